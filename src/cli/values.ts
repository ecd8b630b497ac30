import { z } from 'zod'
import { SCOPES } from '../access/keys.ts'
import { PersonEmail, PersonName } from '../access/people.ts'
import { amountsByCurrency, parseCidr } from '../config/setting-types.ts'
import { isTime } from '../http/fields.ts'
import { compareAmounts, parseAmount } from '../money.ts'

// Schemas of typed options and arguments. Each refusal says what to write instead.

function typed<T>(schema: z.ZodType<T, string>, refusal: string) {
  return z.string().transform((text, ctx): T => {
    const parsed = schema.safeParse(text)
    if (parsed.success) return parsed.data
    ctx.addIssue(refusal)
    return z.NEVER
  })
}

export const flag = (description: string) => z.boolean().optional().describe(description)

export const Merchant = z.string().optional().describe('only of this merchant account')

const UNIT_S = new Map(Object.entries({ s: 1, m: 60, h: 3_600, d: 86_400 }))
const MAX_S = 3_650 * 86_400

function readSeconds(text: string): number {
  const [, digits = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  return text === '0' ? 0 : Number(digits) * (UNIT_S.get(unit) ?? Number.NaN)
}

const Seconds = z
  .string()
  .transform(readSeconds)
  .refine((seconds) => seconds <= MAX_S)

/** `90d`, `24h`, `30m`, `10s` or `0`, in seconds. */
export const Duration = typed(
  Seconds,
  'must be a duration like 90d, 24h, 30m or 0, at most ten years',
)

const fromNow = (sign: 1 | -1) =>
  Seconds.transform((seconds) => new Date(Date.now() + sign * seconds * 1000).toISOString())

export const Expiry = typed(
  z
    .union([z.string().refine(isTime), fromNow(1)])
    .transform((time) => new Date(time).toISOString()),
  'must be a duration like 90d, 12h or 30m, at most ten years, or a time like 2027-01-31T00:00:00Z',
).refine((time) => Date.parse(time) > Date.now(), 'is in the past')

export const Since = typed(
  z.union([z.string().refine(isTime), fromNow(-1)]),
  'must be a time like 2026-11-21T09:00:00Z, or 6h for 6 hours ago',
)

export const Scopes = typed(
  z
    .string()
    .transform((text) => (text === 'all' ? [...SCOPES] : text.split(/ *, */)))
    .pipe(z.array(z.enum(SCOPES))),
  `must be all, or some of ${SCOPES.join(',')}`,
)

const AboveNothing = z
  .string()
  .regex(/^\d+(\.\d+)?$/)
  .refine((text) => compareAmounts(parseAmount(text) ?? '0', '0') > 0)

/** A cap in any currency (decimal string), or one for each currency. */
export const Cap = typed(
  z.union([
    AboveNothing,
    amountsByCurrency()
      .transform((all) => Object.fromEntries(all.map(({ currency, amount }) => [currency, amount])))
      .pipe(z.record(z.string(), AboveNothing)),
  ]),
  'must be an amount like 500000 or 10000.50, or one for each currency like VND:500000,USD:20',
)

export const Count = typed(
  z
    .string()
    .regex(/^[1-9]\d{0,6}$/)
    .transform(Number),
  'must be a whole number from 1 to 9999999',
)

export const Network = z
  .string()
  .refine(
    (text) => parseCidr(text) && !text.includes('%'),
    'must be a network like 203.0.113.0/24 or 2001:db8::/32',
  )

const isText = (text: string) => !/\p{Cc}/u.test(text) && text.isWellFormed()

/** At every start the demo replaces the key that is called `demo`. */
export const KeyName = z
  .string()
  .refine(
    (text) => /^.{1,64}$/u.test(text) && isText(text) && text === text.trim() && text !== 'demo',
    'must be 1 to 64 printable characters, other than demo',
  )

export const KeyOwner = typed(
  z.string().trim().normalize('NFC').min(1).max(140).refine(isText),
  'must be 1 to 140 printable characters',
)

export const NewPersonName = typed(
  PersonName,
  'must be 1 to 140 printable characters, other than demo',
)

export const Email = typed(z.string().trim().pipe(PersonEmail), 'must be an e-mail address')
