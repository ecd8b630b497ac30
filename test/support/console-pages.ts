import { expect } from 'vitest'
import { submitAs, type Visitor, visitAs } from './console.ts'
import { decode, readText } from './read-html.ts'
import type { Rig } from './service.ts'

/** Returns what a person reads on a page. */
function readMain(html: string): string {
  const [, main = html] = /<main[^>]*>(.*)<\/main>/s.exec(html) ?? []
  return readText(main)
}

/** The hidden fields of a form on a page; undefined when the page has no form that is sent there. */
export function readHidden(html: string, action: string): Record<string, string> | undefined {
  const forms = html.split('<form ').slice(1)
  const form = forms.find((one) => decode(one).includes(`action="${action}"`))?.split('</form>')[0]
  if (form === undefined) return undefined
  const inputs = form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)
  return Object.fromEntries([...inputs].map(([, name = '', value = '']) => [name, decode(value)]))
}

/** A page as one person has it open. */
export type OpenPage = { html: string; text: string; status: number }

/** Opens a page as a signed-in person. */
export async function openAs(
  rig: Pick<Rig, 'service'>,
  visitor: Visitor,
  path: string,
): Promise<OpenPage> {
  const response = await visitAs(rig, visitor, path)
  const html = await response.text()
  return { html, text: readMain(html), status: response.status }
}

/** Sends a form of an open page, with its hidden fields, and returns what follows: of one that was refused its page, as 200. */
export async function sendForm(
  rig: Pick<Rig, 'service'>,
  visitor: Visitor,
  page: OpenPage,
  action: string,
  fields: Readonly<Record<string, string>>,
): Promise<OpenPage & { location: string | null }> {
  const hidden = readHidden(page.html, action)
  expect(hidden, `a form for ${action}`).toBeDefined()
  const response = await submitAs(rig, visitor, action, { ...hidden, ...fields })
  const location = response.headers.get('location')
  if (location !== null && /[?&]kept=/.test(location)) {
    return { ...(await openAs(rig, visitor, location)), location }
  }
  const html = await response.text()
  return { html, text: readMain(html), status: response.status, location }
}
