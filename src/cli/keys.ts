import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { createKey, type NewKey, revokeKey, rotateKey } from '../access/key-changes.ts'
import { DEFAULT_RATE_PER_MINUTE } from '../access/key-use.ts'
import {
  DEMO_CHAIN,
  EVERY_MERCHANT,
  EXPIRING_SOON,
  GRANTED,
  SCOPES,
  SETTING_CHAIN,
} from '../access/keys.ts'
import { readDataKeyConfig } from '../config/config.ts'
import { addSealKey, openDataKeys } from '../db/data-keys.ts'
import { actors } from '../db/schema.ts'
import { resealData } from '../maintenance/reseal.ts'
import { listColumns, toIso, withIso } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { endEndpoints } from '../webhooks/endpoints.ts'
import { command, RefusedError } from './command.ts'
import { listMerchants, recordChange } from './database.ts'
import { describeEnded, formatTable } from './print.ts'
import { Cap, Count, Duration, Expiry, KeyName, KeyOwner, Network, Scopes } from './values.ts'

const TIMES = ['createdAt', 'expiresAt', 'lastUsedAt'] as const
const LISTED = [...GRANTED, 'person', 'replaces', ...TIMES, 'lastUsedFrom'] as const

/** Times are ISO 8601. */
type ListedKey = Readonly<Pick<typeof actors.$inferSelect, (typeof LISTED)[number]>> & {
  /** A key has one account, or all: `*`. */
  merchantCode: string
  revokedAt: string | null
  state: 'live' | 'expired' | 'revoked'
  origin: 'setting' | 'demo' | 'rotation' | 'command_line'
  expiresSoon: boolean
}

export async function listKeys(sql: Tx): Promise<ListedKey[]> {
  const rows = await sql<ListedKey[]>`
    select ${sql.unsafe(listColumns(actors, 'k', LISTED))}, merchants[1] as "merchantCode", ended_at as "revokedAt",
      case when ended_at is not null then 'revoked'
        when expires_at <= now() then 'expired' else 'live' end as state,
      case when chain_id = ${SETTING_CHAIN} then 'setting' when replaces is not null then 'rotation'
        when chain_id = ${DEMO_CHAIN} then 'demo' else 'command_line' end as origin,
      ${sql.unsafe(EXPIRING_SOON)} as "expiresSoon"
    from actors as k where kind = 'key' order by created_at desc, id`
  return rows.map((row) => withIso(row, [...TIMES, 'revokedAt']))
}

const COLUMNS = [
  ...(['id', 'name', 'person', 'state', 'origin', 'merchantCode', 'scopes', 'refundMax'] as const),
  ...(['refundDailyMax', 'ratePerMinute', 'networks', 'createdAt', 'endsAt'] as const),
  ...(['lastUsedAt', 'lastUsedFrom'] as const),
]

const LIST = command({
  name: 'keys list',
  description: 'list all keys, newest first, without their text',
  input: {},
  async run({ name, printError, onDatabase }) {
    const value = await onDatabase(({ sql }) => listKeys(sql))
    for (const key of value.filter(({ expiresSoon }) => expiresSoon)) {
      const advice = `replace it with: ${name} keys rotate ${key.id}`
      printError(`warning: ${key.name} ends at ${key.expiresAt}; ${advice}\n`)
    }
    const rows = value.map((key) => ({
      ...key,
      scopes: key.scopes.length === SCOPES.length ? 'all' : key.scopes,
      refundMax: key.refundMax ?? key.refundMaxByCurrency,
      refundDailyMax: key.refundDailyMax ?? key.refundDailyMaxByCurrency,
      endsAt: key.revokedAt ?? key.expiresAt,
    }))
    return { value, text: formatTable(rows, COLUMNS) }
  },
})

const CREATE = command({
  name: 'keys create',
  description: 'create a key; it is shown only once',
  args: ['name'],
  input: {
    name: KeyName.describe('a name to recognise it by'),
    scopes: Scopes.describe(`all, or some of ${SCOPES.join(',')}`),
    merchant: z.string().describe("the merchant account it can access, '*' for all"),
    refundMax: Cap.optional().describe(
      'the largest single refund, 500000 or by currency VND:500000,USD:20',
    ),
    refundDailyMax: Cap.optional().describe(
      'the most refunded in a day of CAPS_TIME_ZONE, also by currency',
    ),
    person: KeyOwner.optional().describe(
      'whose key it is; the keys of one person do not approve the refunds of each other',
    ),
    rate: Count.optional().describe(`requests per minute; ${DEFAULT_RATE_PER_MINUTE} if left out`),
    expires: Expiry.optional().describe(
      'after a duration (90d, 12h) or at a time (2027-01-31T00:00:00Z)',
    ),
    network: z
      .array(Network)
      .optional()
      .describe('a network that it may be used from, repeatable; any if left out'),
  },
  async run(cli, { name, scopes, merchant, ...given }) {
    const newKey: NewKey = {
      ...{ name, scopes, merchantCode: merchant },
      refundMax: getAmount(given.refundMax),
      refundDailyMax: getAmount(given.refundDailyMax),
      refundMaxByCurrency: getByCurrency(given.refundMax),
      refundDailyMaxByCurrency: getByCurrency(given.refundDailyMax),
      ratePerMinute: given.rate ?? null,
      networks: given.network ?? null,
      person: given.person ?? null,
      expiresAt: given.expires ?? null,
    }
    const created = await cli.change(async (tx) => {
      await listMerchants(tx, merchant)
      const { id, text: key } = await createKey(tx, newKey)
      await recordChange(cli, tx, 'keys create', merchant, id)
      return { id, key }
    })
    const text = presentKey(created.key, `${created.id}  ${name}`)
    return { value: { ...created, ...newKey }, text }
  },
})

type GivenCap = z.output<typeof Cap> | undefined
const getAmount = (cap: GivenCap) => (typeof cap === 'string' ? cap : null)
const getByCurrency = (cap: GivenCap) => (typeof cap === 'object' ? cap : null)

function presentKey(key: string, description: string, oldEndsAt?: string): string {
  const old = oldEndsAt === undefined ? '' : `The old key is valid until ${oldEndsAt}.\n`
  return `${key}\n\nThis is the key ${description}. Copy it now: only its hash is stored, so it cannot be shown again.\n${old}`
}

const KeyRef = z.string().describe('its id, or its name if only one live key has it')

const NOT_ROTATED = {
  not_live: 'the key is expired or revoked and cannot be rotated; create a new one',
  of_setting:
    'this is the key of the setting API_KEY: set another text and restart; the key before it ends after API_KEY_GRACE_MS',
}

const ROTATE = command({
  name: 'keys rotate',
  description: 'replace a key; both keys are valid for the grace period',
  args: ['key'],
  input: {
    key: KeyRef,
    grace: Duration.default(86_400).describe('how long the old key stays valid; 1d if left out'),
  },
  async run(cli, { key: ref, grace }) {
    const { id, key, oldId, oldEndsAt } = await cli.change(async (tx) => {
      const { id: oldId, merchantCode } = await findKey(tx, ref)
      const rotation = await rotateKey(tx, oldId, grace)
      if (rotation.kind === 'already_rotated') {
        const what = `the key was already rotated; its successor is ${rotation.successorId}`
        throw new RefusedError(what)
      }
      if (rotation.kind !== 'rotated') throw new RefusedError(NOT_ROTATED[rotation.kind])
      const { id, text: key } = rotation.created
      await recordChange(cli, tx, 'keys rotate', merchantCode, oldId)
      await recordChange(cli, tx, 'keys rotate', merchantCode, id)
      return { id, key, oldId, oldEndsAt: toIso(rotation.oldEndsAt) }
    })
    const value = { id, key, replaces: oldId, oldKeyEndsAt: oldEndsAt }
    return { value, text: presentKey(key, `${id}, replacing ${oldId}`, oldEndsAt) }
  },
})

const REVOKE = command({
  name: 'keys revoke',
  description: 'revoke a key now, and end its webhook endpoints',
  args: ['key'],
  input: { key: KeyRef },
  async run(cli, { key: ref }) {
    const { id, wasLive, endpoints } = await cli.change(async (tx) => {
      const { id, merchantCode } = await findKey(tx, ref)
      const wasLive = await revokeKey(tx, id)
      if (wasLive) await recordChange(cli, tx, 'keys revoke', merchantCode, id)
      return { id, wasLive, endpoints: await endEndpoints(tx, [id]) }
    })
    const result = wasLive
      ? 'is revoked: writes are refused from now on, reads within a second'
      : 'was already revoked'
    const value = { id, revoked: true, endpoints }
    return { value, text: `${id} ${result}\n${describeEnded(endpoints)}` }
  },
})

/** @param ref an id or a name; never printed, because by mistake it could be the key itself */
async function findKey(tx: Tx, ref: string): Promise<ListedKey> {
  const all = await listKeys(tx)
  const byId = all.find(({ id }) => id === ref.toLowerCase())
  const [byName, second] = all.filter(({ name, state }) => name === ref && state === 'live')
  if (second && !byId)
    throw new RefusedError('several live keys have this name; use the id of one of them')
  const found = byId ?? byName
  if (found) return found
  throw new RefusedError('no key has this id and no live key has this name; see keys list')
}

const RESEAL = command({
  name: 'keys reseal',
  description: 'encrypt all stored receivers and webhook secrets again, under a fresh key',
  input: {},
  async run(cli) {
    const roots = readDataKeyConfig(cli.env)
    const value = await cli.onDatabase(async ({ sql }) => {
      const isInUse = await addSealKey(sql, roots, (tx) =>
        recordChange(cli, tx, 'keys reseal', EVERY_MERCHANT, null),
      )
      const keys = await openDataKeys(sql, roots)
      cli.printError('a fresh key is stored; every process has a minute to read it\n')
      while (!(await isInUse())) await pause(500)
      await keys.reread()
      return await resealData(sql, keys)
    })
    const { receivers, events, endpoints, unreadable } = value
    const text = `encrypted again: ${receivers} receivers, ${events} events, ${endpoints} webhook secrets; ${unreadable} unreadable\n`
    return { value, text }
  },
})

export const KEYS = [CREATE, LIST, ROTATE, REVOKE, RESEAL]
