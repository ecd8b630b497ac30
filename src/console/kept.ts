import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { z } from 'zod'
import type { ConsoleContext } from './env.ts'
import { listKeys, type NoticeCode } from './texts/text.ts'

type KeepingContext = Pick<ConsoleContext, 'encryption' | 'now'>

/** Whose it is, and of which page: what was kept opens for no other. */
export type Owner = { personId: string; path: string }

export const KEPT_S = 3_600

/** With all else that a request carries it has to fit into what servers and proxies take. */
const MAX_LENGTH = 6_000
const MAX_TEXT = 100_000

const placeOf = ({ personId, path }: Owner) =>
  ({ column: 'console.kept', row: `${personId} ${path}` }) as const

const Content = z.strictObject({ at: z.number(), content: z.unknown() })

/**
 * Seals something for the address of a page, where Back and reload find it again: it outlives a failover, and each tab
 * has its own. @returns undefined for too much
 */
export function seal(
  { encryption, now }: KeepingContext,
  owner: Owner,
  content: unknown,
): string | undefined {
  // Compressed: a long list in Vietnamese fits as well.
  const text = deflateRawSync(JSON.stringify({ at: now().getTime(), content })).toString('base64')
  const sealed = encryption.encrypt(text, placeOf(owner)).toString('base64url')
  return sealed.length > MAX_LENGTH ? undefined : sealed
}

/** @returns undefined for what was sealed for another person or page, longer ago, or is none of ours */
export function open<T>(
  { encryption, now }: KeepingContext,
  owner: Owner,
  token: string,
  schema: z.ZodType<T>,
  forS = KEPT_S,
): T | undefined {
  try {
    const sealed = Buffer.from(token, 'base64url')
    // Decoding skips what is not Base64: only the text that was issued is taken.
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

/** A form that was not carried out: what was typed, what is wrong with it, and what happened instead. */
export const KeptForm = z.strictObject({
  action: z.string(),
  fields: Texts,
  problems: Texts.default({}),
  alerts: z.array(z.string()).default([]),
  /** Where more about that stands. */
  links: z.array(z.strictObject({ text: z.string(), href: z.string() })).default([]),
  /** What the decision contradicts: it can be confirmed. */
  evidence: z.array(z.string()).default([]),
  /** It was never sent, because the session had ended or the database was away. */
  isUnsent: z.boolean().default(false),
})

export type KeptForm = z.infer<typeof KeptForm>

/** The address of a page that shows a form again; what is too much for it is left out. */
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

/** How long an address says what was done (s). Whoever opens it later sees what is so by then. */
const SAID_S = 60

const Notice = z.enum(listKeys('notice'))

/** The address of a page that says what was done, to this person and for a minute: no link makes it say what nobody did. */
export function pageSaying(
  ctx: KeepingContext,
  personId: string,
  page: string,
  code: NoticeCode,
): string {
  const url = new URL(page, 'http://localhost')
  url.searchParams.set('notice', `${code}.${seal(ctx, { personId, path: url.pathname }, code)}`)
  return url.pathname + url.search + url.hash
}

export function readNotice(ctx: KeepingContext, owner: Owner, given = ''): NoticeCode | undefined {
  return open(ctx, owner, given.split('.')[1] ?? '', Notice, SAID_S)
}
