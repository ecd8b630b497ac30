import type { Command } from 'commander'
import {
  type CapsByCurrency,
  DEMO_CHAIN,
  EXPIRING_SOON,
  GRANTED,
  SCOPES,
  SETTING_CHAIN,
} from '../access/keys.ts'
import { actors } from '../db/schema.ts'
import { listColumns, withIso } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { type Json, jsonOption } from './options.ts'
import { type Cli, formatTable } from './print.ts'

const TIMES = ['createdAt', 'expiresAt', 'lastUsedAt'] as const
const LISTED = [...GRANTED, 'person', 'replaces', ...TIMES, 'lastUsedFrom'] as const

/** A key as the command line shows it: its times are ISO 8601. */
export type ListedKey = Readonly<Pick<typeof actors.$inferSelect, (typeof LISTED)[number]>> & {
  /** A merchant code, or `*`: a key has one account or all. */
  merchantCode: string
  revokedAt: string | null
  state: 'live' | 'expired' | 'revoked'
  /** What made it. */
  origin: 'setting' | 'demo' | 'rotation' | 'command_line'
  expiresSoon: boolean
}

/** Lists all API keys ever created, newest first. */
export async function listKeys(sql: Sql | Tx): Promise<ListedKey[]> {
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

export function addListCommand(keys: Command, { name, emit, printError, onDatabase }: Cli): void {
  keys
    .command('list')
    .description('list all keys, newest first, without their text')
    .addOption(jsonOption())
    .action(async (options: Json) => {
      const rows = await onDatabase((sql) => listKeys(sql))
      emit(options.json, rows, formatTable(HEADINGS, rows.map(formatRow)))
      printError(warnOfExpiry(rows, name))
    })
}

const HEADINGS = [
  ...['ID', 'NAME', 'STATE', 'ORIGIN', 'MERCHANT', 'SCOPES', 'REFUNDS', 'RATE', 'NETWORKS'],
  ...['CREATED', 'ENDS', 'LAST USED', 'FROM'],
]

/** Returns one line for each key that ends soon; empty for none. */
function warnOfExpiry(keys: readonly ListedKey[], name: string): string {
  return keys
    .filter(({ expiresSoon }) => expiresSoon)
    .map(
      (key) =>
        `warning: ${key.name} ends at ${key.expiresAt}; replace it with: ${name} keys rotate ${key.id}\n`,
    )
    .join('')
}

function formatRow(key: ListedKey): string[] {
  const caps = [
    ...formatCaps(key.refundMax, key.refundMaxByCurrency).map((cap) => `≤ ${cap}`),
    ...formatCaps(key.refundDailyMax, key.refundDailyMaxByCurrency).map((cap) => `≤ ${cap} a day`),
  ]
  return [
    key.id,
    key.name,
    key.state,
    formatOrigin(key),
    key.merchantCode,
    key.scopes.length === SCOPES.length ? 'all' : key.scopes.join(','),
    caps.join(', ') || '-',
    key.ratePerMinute === null ? '-' : `${key.ratePerMinute}/min`,
    key.networks?.join(',') ?? '-',
    key.createdAt.slice(0, 16),
    (key.revokedAt ?? key.expiresAt)?.slice(0, 16) ?? '-',
    key.lastUsedAt?.slice(0, 16) ?? '-',
    key.lastUsedFrom ?? '-',
  ]
}

function formatOrigin({ origin, replaces }: ListedKey): string {
  if (origin === 'rotation') return `rotated from ${replaces}`
  return { setting: 'API_KEY', demo: 'demo', command_line: 'command line' }[origin]
}

function formatCaps(any: string | null, byCurrency: CapsByCurrency | null): string[] {
  const ofCurrencies = Object.entries(byCurrency ?? {}).map(([code, cap]) => `${cap} ${code}`)
  return any === null ? ofCurrencies : [any, ...ofCurrencies]
}
