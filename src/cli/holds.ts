import { z } from 'zod'
import { changeHold, findSubject, HOLD_TARGETS, listHolds } from '../decisions/holds.ts'
import { withIso } from '../platform/postgres/row-set.ts'
import { Reason } from '../refunds/request-schema.ts'
import { command } from './command.ts'
import { listMerchants, NO_KEY, readActor } from './database.ts'
import { formatTable } from './print.ts'

const LIST = command({
  name: 'holds list',
  description: 'list what is held, the oldest hold first',
  input: {},
  async run({ onDatabase }) {
    const value = (await onDatabase(({ sql }) => listHolds(sql))).map((one) => withIso(one, ['at']))
    const columns = ['at', 'merchantCode', 'target', 'id', 'by', 'reason'] as const
    return { value, text: formatTable(value, columns) }
  },
})

const change = (name: string, held: boolean, description: string) =>
  command({
    name,
    description,
    args: ['target', 'id'],
    input: {
      target: z.enum(HOLD_TARGETS).describe('what is held'),
      id: z.string().describe('the merchant code, or the id of the payment or the refund'),
      reason: Reason.min(1, 'is empty').describe('why; shown to readers'),
      merchant: z.string().optional().describe('the merchant account, if several have the id'),
    },
    async run({ onDatabase, log }, { target, id, reason, merchant }) {
      const value = await onDatabase(async (db) => {
        const merchants = await listMerchants(db.sql, merchant)
        const subject = await findSubject(db.sql, merchants, target, id)
        const ctx = { db, log, encryption: NO_KEY }
        const hold = await changeHold(ctx, readActor(), subject, { held, reason, operation: name })
        return { target, id: subject.id, merchantCode: subject.merchantCode, hold }
      })
      return { value, text: `${target} ${id} ${held ? 'is held' : 'is no longer held'}\n` }
    },
  })

export const HOLDS = [
  LIST,
  change('holds set', true, 'hold: nothing of the target is sent'),
  change('holds release', false, 'release a hold'),
]
