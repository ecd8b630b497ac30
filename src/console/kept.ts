import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { z } from 'zod'
import type { ConsoleContext } from './env.ts'
import { listKeys, type NoticeCode } from './texts/text.ts'

type KeepingContext = Pick<ConsoleContext, 'encryption' | 'now'>

/** The person and the page for which something is kept. It opens for no others. */
type Owner = { personId: string; path: string }

export const KEPT_S = 3_600

/** An address has to fit into what servers and proxies take, together with the rest of a request. */
const MAX_LENGTH = 6_000
const MAX_TEXT = 100_000

const placeOf = ({ personId, path }: Owner) =>
  ({ column: 'console.kept', row: `${personId} ${path}` }) as const

const Content = z.strictObject({ at: z.number(), content: z.unknown() })

/**
 * Seals something for the address of a page, where Back and reload find it again. It survives a failover, and each
 * tab has its own.
 * @returns undefined if it is too long
 */
export function seal(
  { encryption, now }: KeepingContext,
  owner: Owner,
  content: unknown,
): string | undefined {
  // Compressed, so that a long list in Vietnamese fits.
  const text = deflateRawSync(JSON.stringify({ at: now().getTime(), content })).toString('base64')
  const sealed = encryption.encrypt(text, placeOf(owner)).toString('base64url')
  return sealed.length > MAX_LENGTH ? undefined : sealed
}

/** @returns undefined if it was sealed for another person or page, too long ago, or not by this service */
export function open<T>(
  { encryption, now }: KeepingContext,
  owner: Owner,
  token: string,
  schema: z.ZodType<T>,
  forS = KEPT_S,
): T | undefined {
  try {
    const sealed = Buffer.from(token, 'base64url')
    // Decoding skips what is not Base64, but only the issued text is accepted.
    if (sealed.toString('base64url') !== token) return undefined
    const compressed = Buffer.from(encryption.decrypt(sealed, placeOf(owner)), 'base64')
    const text = inflateRawSync(compressed, { maxOutputLength: MAX_TEXT }).toString()
    const { at, content } = Content.parse(JSON.parse(text))
    return now().getTime() - at <= forS * 1000 ? schema.parse(content) : undefined
  } catch {
    return undefined
  }
}

const Texts = z.record(z.string(), z.string())

export const KeptForm = z.strictObject({
  action: z.string(),
  fields: Texts,
  problems: Texts.default({}),
  alerts: z.array(z.string()).default([]),
  links: z.array(z.strictObject({ text: z.string(), href: z.string() })).default([]),
  /** What the decision contradicts. The person can confirm it all the same. */
  evidence: z.array(z.string()).default([]),
  /** Why it is to be sent again: the session had ended, or the database gave no answer and it may have been carried out. */
  returned: z.enum(['unsent', 'unclear']).optional(),
})

export type KeptForm = z.infer<typeof KeptForm>

/** Returns the address of a page that shows a form again, without its fields if they are too long. */
export function pageWith(
  ctx: KeepingContext,
  personId: string,
  page: string,
  form: z.input<typeof KeptForm>,
): string {
  const url = new URL(page, 'http://localhost')
  const owner = { personId, path: url.pathname }
  const token = seal(ctx, owner, form) ?? seal(ctx, owner, { ...form, fields: {} })
  if (token === undefined) return page
  url.searchParams.set('kept', token)
  return url.pathname + url.search
}

/** How long an address says what was done (s). Later it may no longer be true. */
const SAID_S = 60

const Notice = z.strictObject({ code: z.enum(listKeys('notice')), count: z.number() })

export type Notice = z.infer<typeof Notice>

/** Returns the address of a page that says what was done. It is sealed, so that no link says what was not done. */
export function pageSaying(
  ctx: KeepingContext,
  personId: string,
  page: string,
  code: NoticeCode,
  count = 0,
): string {
  const url = new URL(page, 'http://localhost')
  const sealed = seal(ctx, { personId, path: url.pathname }, { code, count })
  url.searchParams.set('notice', `${code}.${sealed}`)
  return url.pathname + url.search + url.hash
}

export function readNotice(ctx: KeepingContext, owner: Owner, given = ''): Notice | undefined {
  return open(ctx, owner, given.split('.')[1] ?? '', Notice, SAID_S)
}
