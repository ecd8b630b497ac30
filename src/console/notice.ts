import type { ConsoleRequest } from './env.ts'
import { isSame } from './form-guard.ts'
import type { NoticeCode } from './texts/text.ts'
import { listTexts, usePerson, useView } from './view.ts'

/** How long an address says what was done (ms). Whoever opens it later sees what is so by then. */
const SAID_MS = 60_000

/**
 * Names a notice for the address of a page that follows a form. Only this session's page says it, and only for a
 * minute: no link makes a page say what nobody did.
 */
export function writeNotice(code: NoticeCode, page: string): string {
  return prove(code, String(Date.now()), new URL(page, 'http://localhost').pathname)
}

/** The text of the notice in an address; undefined for one that was written for another session, page or time. */
export function readNotice(c: ConsoleRequest): string | undefined {
  const given = c.req.query('notice') ?? ''
  const [code = '', at = ''] = given.split('.')
  const isNow = Math.abs(Date.now() - Number(at)) <= SAID_MS
  if (!useView().person || !isNow) return undefined
  if (!isSame(given, prove(code, at, new URL(c.req.url).pathname))) return undefined
  return listTexts('notice').find(([known]) => known === code)?.[1]
}

const prove = (code: string, at: string, path: string) =>
  `${code}.${at}.${usePerson().sign(`notice ${code} ${at} ${path}`)}`
