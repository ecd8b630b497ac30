import { expect } from 'vitest'
import { z } from 'zod'
import { Event, type EventView } from '../../src/feed/view.ts'
import type { Rig } from './service.ts'

const Page = z.strictObject({ data: z.array(z.unknown()), nextCursor: z.string() })

/** A page of the feed: status 200, every event of its schema and of no member more. */
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

/** Every event there is behind a cursor. */
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

/** Where the feed ends now: the cursor of who has read everything. */
export async function findEnd(rig: Pick<Rig, 'api'>): Promise<string> {
  for (let cursor = ''; ; ) {
    const page = await readEvents(
      await rig.api(`/v1/events?limit=200${cursor && `&after=${cursor}`}`),
    )
    if (page.data.length === 0) return page.nextCursor
    cursor = page.nextCursor
  }
}
