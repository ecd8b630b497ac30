import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { createReads } from '../db/reads.ts'
import { EVENT_TYPES, type EventRow, isEventType, serializeEvent } from '../events/event.ts'
import { readEnd, readFeed } from '../feed/read-feed.ts'
import { Cursor } from '../feed/view.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { openEncryption } from './database.ts'
import { listMerchants, readEventTypes } from './lists.ts'
import { type Json, jsonOption, readAs, UsageError } from './options.ts'
import type { Cli } from './print.ts'
import { formatTime } from './show.ts'

type FollowOptions = Json & { types?: string; after?: number; merchant?: string }

/** How long to wait at the end of the feed (ms). */
const POLL_MS = 500

/** Adds `follow`, which prints the feed as it grows. */
export function addFollowCommand(program: Command, cli: Cli): void {
  program
    .command('follow')
    .description('print events as they happen, until Ctrl-C')
    .option('--types <types>', 'only these event types, separated by commas', readEventTypes)
    .option('--after <cursor>', 'begin behind this event, and not now', readCursor)
    .option('--merchant <code>', 'only of this merchant account')
    .addOption(jsonOption('a line of JSON for each event, as the API has it'))
    .addHelpText('after', EXAMPLES)
    .action((options: FollowOptions) => follow(cli, options))
}

const EXAMPLES = `
Examples:
  cli follow                                  everything from now on
  cli follow --types refund.updated --json | jq .data.status
  cli follow --after 1200                     goes on where another follow ended`

const readCursor = readAs(Cursor.unwrap(), 'Write the id of an event, as follow prints it.')

async function follow(cli: Cli, { types, after, merchant, json }: FollowOptions): Promise<void> {
  await cli.onDatabase(async (sql, db) => {
    const encryption = json ? await openEncryption(sql, cli.env) : undefined
    const merchants = merchant === undefined ? undefined : await listMerchants(sql, merchant)
    const wanted = types?.split(',') ?? EVENT_TYPES
    const filter = { merchants, types: wanted.filter(isEventType), withRefunds: true }
    const reads = createReads({ sql, db }, 1)
    const end = await readEnd({ reads })
    if (after !== undefined && after > end) {
      throw new UsageError(`--after ${after} is beyond the newest event, which is ${end}`)
    }
    let next = after ?? end
    // Ctrl-C ends the wait and not the process, so that the place is told.
    const stopping = new AbortController()
    const { signal } = stopping
    const stop = () => stopping.abort()
    process.once('SIGINT', stop).once('SIGTERM', stop)
    try {
      while (!signal.aborted) {
        const page = await readFeed({ reads }, filter, next, 200, '--after')
        for (const event of page.events) {
          await cli.print(`${encryption ? serializeEvent(encryption, event) : format(event)}\n`)
        }
        next = page.next
        if (page.atEnd) await pause(POLL_MS, undefined, { signal }).catch(() => {})
      }
    } finally {
      process.removeListener('SIGINT', stop).removeListener('SIGTERM', stop)
      cli.printError(`go on with: ${cli.name} follow --after ${next}\n`)
    }
  })
}

/** What an object is like, of those members that it has. */
const TOLD = ['status', 'state', 'kind', 'amount', 'paidAmount', 'currency']

function format({ id, at, type, merchantCode, transactionId, orderId, data }: EventRow): string {
  const object = new Map(Object.entries(JSON.parse(data) ?? {}))
  const told = TOLD.flatMap((name) => object.get(name) ?? []).join(' ')
  const of = orderId === null ? transactionId : `${transactionId} (${orderId})`
  return `${id}  ${formatTime(toIso(at))}  ${type}  ${merchantCode}  ${of}  ${told}`
}
