import type { Command } from 'commander'
import { type CapsByCurrency, type ListedKey, listKeys, SCOPES } from '../access/keys.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { type Json, jsonOption } from './options.ts'
import { type Cli, formatTable } from './print.ts'

/** Adds `keys list`. */
export function addListCommand(keys: Command, { name, emit, printError, onDatabase }: Cli): void {
  keys
    .command('list')
    .description('list all keys, newest first, without their text')
    .addOption(jsonOption())
    .action(async (options: Json) => {
      const rows = (await onDatabase((sql) => listKeys(sql))).map(showKey)
      emit(options.json, rows, formatTable(HEADINGS, rows.map(formatRow)))
      printError(warnOfExpiry(rows, name))
    })
}

/** A key as the command line shows it: its times are ISO 8601. */
type ShownKey = ReturnType<typeof showKey>

const showKey = ({ createdAt, expiresAt, revokedAt, lastUsedAt, ...key }: ListedKey) => ({
  ...key,
  createdAt: toIso(createdAt),
  expiresAt: toIso(expiresAt),
  revokedAt: toIso(revokedAt),
  lastUsedAt: toIso(lastUsedAt),
})

const HEADINGS = [
  ...['ID', 'NAME', 'STATE', 'ORIGIN', 'MERCHANT', 'SCOPES', 'REFUNDS', 'RATE', 'NETWORKS'],
  ...['CREATED', 'ENDS', 'LAST USED', 'FROM'],
]

/** Returns one line for each key that ends soon; empty for none. */
function warnOfExpiry(keys: readonly ShownKey[], name: string): string {
  return keys
    .filter(({ expiresSoon }) => expiresSoon)
    .map(
      (key) =>
        `warning: ${key.name} ends at ${key.expiresAt}; replace it with: ${name} keys rotate ${key.id}\n`,
    )
    .join('')
}

function formatRow(key: ShownKey): string[] {
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

function formatOrigin({ origin, replaces }: ShownKey): string {
  if (origin === 'rotation') return `rotated from ${replaces}`
  return { setting: 'API_KEY', demo: 'demo', command_line: 'command line' }[origin]
}

function formatCaps(any: string | null, byCurrency: CapsByCurrency | null): string[] {
  const ofCurrencies = Object.entries(byCurrency ?? {}).map(([code, cap]) => `${cap} ${code}`)
  return any === null ? ofCurrencies : [any, ...ofCurrencies]
}
