import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** The rules of WCAG 2.2, levels A and AA, and the practices that axe-core adds. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

const RUN_AXE = `axe.run(document, { runOnly: ${JSON.stringify(RULES)} }).then(({ violations }) =>
  violations.flatMap(({ id, help, nodes }) => nodes.map(({ target }) => id + ': ' + help + ' at ' + target.join(' '))))`

/** Returns what breaks the rules of accessibility on a page, one line each. */
export async function findBarriers(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return await page.evaluate<string[]>(RUN_AXE)
}

const FIND_MISFITS = `(() => {
  const found = []
  const root = document.documentElement
  if (root.scrollWidth > root.clientWidth) found.push('the page scrolls sideways by ' + (root.scrollWidth - root.clientWidth) + ' px')
  const name = (element) => element.tagName.toLowerCase() + (element.id ? '#' + element.id : '') + (element.className ? '.' + element.className : '') + ' "' + element.textContent.trim().slice(0, 40) + '"'
  const isShown = (element) => element.checkVisibility() && !element.closest('.hidden, caption, .skip, thead')
  const shown = [...document.body.querySelectorAll('*')].filter(isShown)
  for (const element of shown) {
    const { left, right, width, height } = element.getBoundingClientRect()
    if (width > 0 && height > 0 && (left < -1 || right > root.clientWidth + 1)) found.push('beyond the edge: ' + name(element))
    const style = getComputedStyle(element)
    if (style.overflowX !== 'visible' && element.scrollWidth > element.clientWidth + 1 && !['INPUT', 'SELECT', 'TEXTAREA'].includes(element.tagName)) found.push('clipped: ' + name(element))
  }
  const targets = shown.filter((element) => element.matches('a, button, input, select, textarea, summary') && element.type !== 'hidden')
  for (const [at, one] of targets.entries()) {
    const a = one.getBoundingClientRect()
    for (const other of targets.slice(at + 1)) {
      if (one.contains(other) || other.contains(one)) continue
      const b = other.getBoundingClientRect()
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left)
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
      if (across > 1 && down > 1 && getComputedStyle(one).display !== 'inline' && getComputedStyle(other).display !== 'inline') found.push('overlapping: ' + name(one) + ' and ' + name(other))
    }
  }
  return found
})()`

/** Returns what does not fit on a page: sideways scrolling, clipped text, things beyond the edge, overlapping targets. */
export async function findMisfits(page: Page): Promise<string[]> {
  return await page.evaluate<string[]>(FIND_MISFITS)
}

const STOPS = 'a[href], button, input:not([type=hidden]), select, textarea, summary'

/** A field for a date is several stops. */
const COUNT_STOPS = `document.querySelectorAll('${STOPS}').length + 5 * document.querySelectorAll('[type=date]').length`

const MARK_STOPS = `document.addEventListener('focusin', ({ target }) => {
  if (target.dataset.reached === 'seen') return
  target.dataset.reached = getComputedStyle(target).outlineStyle === 'none' ? 'unseen' : 'seen'
})`

/** One button of a group of radio buttons is enough: the arrow keys lead to the others. */
const LIST_UNREACHED = `[...document.querySelectorAll('${STOPS}')]
  .filter((one) => one.checkVisibility() && one.dataset.reached !== 'seen')
  .filter((one) => one.type !== 'radio' || !document.querySelector('[type=radio][name="' + one.name + '"][data-reached=seen]'))
  .map((one) => (one.dataset.reached ?? 'not reached') + ': ' + one.outerHTML.slice(0, 80))`

/** Returns the links, buttons and fields that the tab key does not reach, and those it reaches without a visible focus. */
export async function findUnreachable(page: Page): Promise<string[]> {
  const count = await page.evaluate<number>(COUNT_STOPS)
  await page.evaluate(MARK_STOPS)
  for (let step = 0; step < count + 2; step += 1) await page.keyboard.press('Tab')
  return await page.evaluate<string[]>(LIST_UNREACHED)
}
