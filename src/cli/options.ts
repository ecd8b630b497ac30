import { InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { SCOPES, type Scope } from '../access/keys.ts'
import { compareAmounts, parseAmount } from '../money.ts'

const UNIT_S = { s: 1, m: 60, h: 3_600, d: 86_400 }
const MAX_S = 3_650 * UNIT_S.d

/** Seconds, from `90d`, `24h`, `30m`, `10s` or `0`. @throws InvalidArgumentError */
export function readDuration(text: string): number {
  const [, digits = '', unit = 's'] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  const seconds = text === '0' ? 0 : Number(digits) * (UNIT_S[asUnit(unit)] ?? 0)
  if ((text !== '0' && digits === '') || seconds > MAX_S) {
    throw new InvalidArgumentError('Write a duration like 90d, 24h, 30m or 0, at most ten years.')
  }
  return seconds
}

function asUnit(text: string): keyof typeof UNIT_S {
  return text === 'm' || text === 'h' || text === 'd' ? text : 's'
}

/** ISO 8601, from a duration from now on or a time to come. @throws InvalidArgumentError */
export function readEnd(text: string): string {
  const time = z.iso.datetime({ offset: true }).safeParse(text)
  const end = time.success ? Date.parse(time.data) : Date.now() + readDuration(text) * 1000
  if (end <= Date.now()) throw new InvalidArgumentError('That is over already.')
  return new Date(end).toISOString()
}

/** `all`, or names joined by commas. @throws InvalidArgumentError */
export function readScopes(text: string): Scope[] {
  if (text === 'all') return [...SCOPES]
  const names = text.split(',').map((name) => name.trim())
  const scopes = SCOPES.filter((scope) => names.includes(scope))
  if (scopes.length === new Set(names).size) return scopes
  throw new InvalidArgumentError(`Write all, or some of ${SCOPES.join(',')}.`)
}

/** A decimal string above 0. @throws InvalidArgumentError */
export function readCap(text: string): string {
  const amount = /^\d+(\.\d+)?$/.test(text) ? parseAmount(text) : undefined
  if (amount !== undefined && compareAmounts(amount, '0') > 0) return amount
  throw new InvalidArgumentError('Write an amount like 500000 or 10000.50.')
}

/** @throws InvalidArgumentError */
export function readCount(text: string): number {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number from 1 to 9999999.')
}

/** A name to recognise a key by. @throws InvalidArgumentError */
export function readName(text: string): string {
  if (/^[^\p{Cc}]{1,64}$/u.test(text) && text === text.trim() && text.isWellFormed()) {
    // The demo makes its key anew at every start, and takes the old one of this name away.
    if (text !== 'demo') return text
  }
  throw new InvalidArgumentError('Write 1 to 64 printable characters, other than demo.')
}

/** The id of a key. @throws InvalidArgumentError */
export function readId(text: string): string {
  if (z.guid().safeParse(text).success) return text
  throw new InvalidArgumentError('Write the id of a key; see keys list.')
}
