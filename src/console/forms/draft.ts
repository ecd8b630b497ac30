import { z } from 'zod'
import type { ConsoleContext } from '../context.ts'
import { DRAFT_MAX_AGE_S, readCookie, removeCookie, writeCookie } from '../cookies.ts'
import type { ConsoleRequest, FormFields } from '../env.ts'
import { isUnsafe, PAGE_FIELD, TOKEN_FIELD } from './protect-forms.ts'

type DraftContext = Pick<ConsoleContext, 'config' | 'encryption' | 'now'>

/** Where a person was when they had to sign in, and what they had typed there. */
const Draft = z.strictObject({
  /** The page to return to. */
  page: z.string(),
  /** Where the form would have been sent. */
  action: z.string(),
  fields: z.record(z.string(), z.string()),
  /** When it was kept (ms since 1970). */
  at: z.number(),
})

export type Draft = z.infer<typeof Draft>

/** Encrypted and in Base64 it has to fit into a cookie of 4,096 bytes (RFC 6265, 6.1). */
const MAX_BYTES = 2_900

/** A path of the console, other than the way in. */
const OWN_PAGE = /^\/console(?!\/sign-in)(?:[/?][\x21-\x7e]*)?$/

const placeOf = (personId: string | undefined) =>
  ({ column: 'cookies.draft', row: personId ?? 'anybody' }) as const

/**
 * Keeps the page of this request and the fields of its form in the browser, until the person has signed in. Only the
 * same person gets the fields back. Too many of them are dropped.
 * @param personId undefined when it is not known who it is: then only the page is kept
 */
export function keepDraft(
  ctx: DraftContext,
  c: ConsoleRequest,
  personId: string | undefined,
): void {
  const { [TOKEN_FIELD]: _, [PAGE_FIELD]: formPage, ...typed } = c.get('form') ?? {}
  const page = isUnsafe(c) ? (formPage ?? '/console') : nameThisPage(c)
  if (!OWN_PAGE.test(page)) return
  const place = { page, action: c.req.path, at: ctx.now().getTime() }
  const whole = JSON.stringify({ ...place, fields: typed } satisfies Draft)
  const isTyped = Object.keys(typed).length > 0 && Buffer.byteLength(whole) <= MAX_BYTES
  if (isTyped && personId !== undefined) {
    write(ctx, c, whole, personId)
    return
  }
  // A page that was only opened does not replace what was typed on another.
  const kept = readCookie(ctx, c, 'draft')
  if (kept !== undefined && !open(ctx, kept, undefined)) return
  const empty = JSON.stringify({ ...place, fields: {} } satisfies Draft)
  if (Buffer.byteLength(empty) <= MAX_BYTES) write(ctx, c, empty, undefined)
}

function write(
  ctx: DraftContext,
  c: ConsoleRequest,
  text: string,
  personId: string | undefined,
): void {
  const sealed = ctx.encryption.encrypt(text, placeOf(personId))
  writeCookie(ctx, c, 'draft', sealed.toString('base64url'))
}

/** Returns what was kept for this person, or for anybody. */
export function findDraft(
  ctx: DraftContext,
  c: ConsoleRequest,
  personId: string,
): Draft | undefined {
  const kept = readCookie(ctx, c, 'draft')
  if (kept === undefined) return undefined
  return open(ctx, kept, personId) ?? open(ctx, kept, undefined)
}

/** @returns undefined for what was kept for another person, is too old, or is none of ours */
function open(ctx: DraftContext, kept: string, personId: string | undefined): Draft | undefined {
  try {
    const text = ctx.encryption.decrypt(Buffer.from(kept, 'base64url'), placeOf(personId))
    const draft = Draft.parse(JSON.parse(text))
    const ageMs = ctx.now().getTime() - draft.at
    return ageMs <= DRAFT_MAX_AGE_S * 1000 ? draft : undefined
  } catch {
    return undefined
  }
}

/** On the page that the person returns to: hands over what was typed there, once. */
export function restoreDraft(ctx: DraftContext, c: ConsoleRequest, personId: string): void {
  if (isUnsafe(c)) return
  const draft = findDraft(ctx, c, personId)
  if (draft?.page !== nameThisPage(c)) return
  removeCookie(ctx, c, 'draft')
  if (Object.keys(draft.fields).length > 0) c.set('draft', draft)
}

/**
 * Returns what the person had typed into a form of this page before they had to sign in again: fill it in, and send
 * nothing by itself. Empty if there is nothing.
 * @param action where the form is sent
 */
export function readDraft(c: ConsoleRequest, action: string): FormFields {
  const draft = c.get('draft')
  return draft?.action === action ? draft.fields : {}
}

/** The path and query of this page, as it can be opened again. */
export function nameThisPage(c: ConsoleRequest): string {
  const url = new URL(c.req.url)
  url.searchParams.delete('notice')
  return url.pathname + url.search
}
