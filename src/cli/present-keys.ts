import { type CapsByCurrency, SCOPES } from '../access/keys.ts'
import type { ListedKey } from '../access/list-keys.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { formatTable } from './format-table.ts'

/** A key as the command line shows it: its times are ISO 8601. */
export type ShownKey = ReturnType<typeof showKey>

export const showKey = ({ createdAt, expiresAt, revokedAt, lastUsedAt, ...key }: ListedKey) => ({
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

/** Formats keys as a table. */
export function presentKeys(keys: readonly ShownKey[]): string {
  return formatTable(HEADINGS, keys.map(formatRow))
}

/** Returns one line for each key that ends soon; empty for none. */
export function warnOfExpiry(keys: readonly ShownKey[]): string {
  return keys
    .filter(({ expiresSoon }) => expiresSoon)
    .map(
      ({ id, name, expiresAt }) =>
        `warning: ${name} ends at ${expiresAt}; replace it with: npm run -s cli -- keys rotate ${id}\n`,
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
