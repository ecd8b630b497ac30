import { expect } from 'vitest'
import { z } from 'zod'
import { Event, type EventView } from '../../src/feed/view.ts'
import type { Rig } from './service.ts'

const Page = z.strictObject({ data: z.array(z.unknown()), nextCursor: z.string() })

/** Reads a page of the feed: status 200, and every event matches its schema strictly. */
export async function readEvents(
  response: Response,
): Promise<{ data: EventView[]; nextCursor: string }> {
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
  const { data, nextCursor } = Page.parse(JSON.parse(text))
  return { data: data.map(parseEvent), nextCursor }
}

function parseEvent(given: unknown): EventView {
  const event = Event.parse(given)
  expect(event).toEqual(given)
  return event
}

/** Reads every event after a cursor. */
export async function readAllEvents(rig: Pick<Rig, 'api'>, after?: string): Promise<EventView[]> {
  const all: EventView[] = []
  let cursor = after
  for (;;) {
    const query = cursor === undefined ? '' : `&after=${cursor}`
    const page = await readEvents(await rig.api(`/v1/events?limit=200${query}`))
    all.push(...page.data)
    if (page.data.length === 0) return all
    cursor = page.nextCursor
  }
}

/** Returns the cursor of the feed's current end. */
export async function findEnd(rig: Pick<Rig, 'api'>): Promise<string> {
  for (let cursor = ''; ; ) {
    const page = await readEvents(
      await rig.api(`/v1/events?limit=200${cursor && `&after=${cursor}`}`),
    )
    if (page.data.length === 0) return page.nextCursor
    cursor = page.nextCursor
  }
}

/** The stream so far: messages, and comments as `null`. */
export type Message = { id?: string; event?: string; data?: unknown; retry?: string }

export type OpenStream = {
  response: Response
  messages: Message[]
  /** Comments received: the heartbeats. */
  beats(): number
  /** Resolves when the server ends it. */
  ended: Promise<void>
  leave(): void
}

/** Follows the feed as server-sent events, parsed according to the standard. */
export async function openEventStream(
  rig: Pick<Rig, 'api'>,
  query = '',
  headers: Record<string, string> = {},
): Promise<OpenStream> {
  const leaving = new AbortController()
  const late = setTimeout(() => leaving.abort(new Error('no response within 20 s')), 20_000)
  const response = await rig
    .api(`/v1/events/stream${query}`, { headers, signal: leaving.signal })
    .finally(() => clearTimeout(late))
  const messages: Message[] = []
  let beats = 0
  const reader = response.body?.getReader()
  async function take(): Promise<void> {
    let rest = ''
    for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
      const blocks = (rest + new TextDecoder().decode(read.value)).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const lines = block.split('\n')
        beats += lines.filter((line) => line.startsWith(':')).length
        const pairs = lines.flatMap((line) => {
          const [, name = '', value = ''] = /^(\w+): (.*)$/.exec(line) ?? []
          return name === '' ? [] : [[name, name === 'data' ? JSON.parse(value) : value]]
        })
        if (pairs.length > 0) messages.push(Object.fromEntries(pairs))
      }
    }
  }
  const ended = take().catch(() => {})
  const leave = () => {
    leaving.abort()
    reader?.cancel().catch(() => {})
  }
  return { response, messages, beats: () => beats, ended, leave }
}

/** Reads what was recorded for the feed about transactions, published or not, oldest first. */
export async function readRecorded(
  { database: { sql } }: Pick<Rig, 'database'>,
  ...transactionIds: string[]
) {
  return await sql<{ transactionId: string; type: string; data: Record<string, unknown> }[]>`
    select transaction_id as "transactionId", type, data from (
      select * from event_outbox union all select * from events) as e
    where transaction_id = any(${transactionIds}) order by at, id`
}
