import type { ConsoleRequest } from './env.ts'
import type { NoticeCode } from './texts/text.ts'
import { listTexts } from './view.ts'

/** Leads on after a form was carried out, so that a reload does not send it again. */
export function redirectWith(c: ConsoleRequest, path: string, notice?: NoticeCode): Response {
  if (notice === undefined) return c.redirect(path, 303)
  const [before = '', fragment] = path.split('#')
  const url = `${before}${before.includes('?') ? '&' : '?'}notice=${notice}`
  return c.redirect(fragment === undefined ? url : `${url}#${fragment}`, 303)
}

/** Returns the message that a redirect asked for. Only the catalogue's own texts are ever shown. */
export function readNotice(c: ConsoleRequest): string | undefined {
  const code = c.req.query('notice')
  return listTexts('notice').find(([known]) => known === code)?.[1]
}
