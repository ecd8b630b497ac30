import { setTimeout as pause } from 'node:timers/promises'
import { EVENT_TYPES, type EventRow, serializeEvent } from '../events/event.ts'
import { readEnd, readFeed } from '../feed/read-feed.ts'
import { Cursor, TypesParameter } from '../feed/view.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { command, UsageError } from './command.ts'
import { listMerchants, NO_KEY, openEncryption, PAGE, whileSought } from './database.ts'
import { formatCell } from './print.ts'
import { Merchant } from './values.ts'

const POLL_MS = 500

export const FOLLOW = command({
  name: 'follow',
  description: 'print events as they happen, until Ctrl-C',
  input: {
    types: TypesParameter.describe('only these event types, separated by commas'),
    after: Cursor.describe('begin behind this event, and not now'),
    merchant: Merchant,
  },
  examples: `Examples:
  cli follow                                  everything from now on
  cli follow --types refund.updated --json | jq .data.status
  cli follow --after 1200                     goes on where another follow ended`,
  async run(cli, { types = EVENT_TYPES, after, merchant }) {
    return await cli.onDatabase(async (db) => {
      const encryption = cli.json ? await openEncryption(db.sql, cli.env) : undefined
      const merchants = merchant === undefined ? undefined : await listMerchants(db.sql, merchant)
      const filter = { merchants, types, withRefunds: true }
      const end = await readEnd({ db })
      if (after !== undefined && after > end) {
        throw new UsageError(`--after ${after} is beyond the newest event, which is ${end}`)
      }
      let next = after ?? end
      // Ctrl-C ends the loop and not the process, so that the last line is printed.
      const stopping = new AbortController()
      const { signal } = stopping
      const stop = () => stopping.abort()
      process.once('SIGINT', stop).once('SIGTERM', stop)
      try {
        while (!signal.aborted) {
          const page = await readFeed({ db }, filter, next, PAGE, '--after')
          for (const event of page.events) {
            const write = () => (encryption ? serializeEvent(encryption, event) : format(event))
            await cli.print(`${await whileSought(encryption ?? NO_KEY, write)}\n`)
          }
          next = page.next
          if (page.atEnd) await pause(POLL_MS, undefined, { signal }).catch(() => {})
        }
      } finally {
        process.removeListener('SIGINT', stop).removeListener('SIGTERM', stop)
        cli.printError(`go on with: ${cli.name} follow --after ${next}\n`)
      }
      return undefined
    })
  },
})

/** The members of an event's object that are printed, as far as it has them. */
const TOLD = ['status', 'state', 'kind', 'amount', 'paidAmount', 'currency']

function format({ id, at, type, merchantCode, transactionId, orderId, data }: EventRow): string {
  const object = new Map(Object.entries(JSON.parse(data) ?? {}))
  const told = TOLD.flatMap((name) => object.get(name) ?? []).join(' ')
  const of = orderId === null ? transactionId : `${transactionId} (${orderId})`
  return `${id}  ${formatCell(toIso(at))}  ${type}  ${merchantCode}  ${of}  ${told}`
}
