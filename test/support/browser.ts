import type { Browser, BrowserContext, Page } from 'playwright-core'
import { describe, onTestFinished } from 'vitest'
import { launchBrowser } from './launch-browser.ts'

async function tryBrowser(): Promise<Browser | undefined> {
  try {
    return await launchBrowser()
  } catch (error) {
    if (process.env.CI) throw error
    const [reason] = String(error).split('\n')
    process.stderr.write(`the tests in a browser are skipped, because none starts: ${reason}\n`)
    return undefined
  }
}

/** One for all files that a worker runs; it ends with the worker. */
const browser = await tryBrowser()

/** A `describe` whose tests need a browser: skipped where none can start, failed there in CI. */
export const describeInBrowser: typeof describe | typeof describe.skip = browser
  ? describe
  : describe.skip

export type BrowserOptions = {
  /** CSS pixels; 1,280 if left out. */
  width?: number
  colorScheme?: 'light' | 'dark'
  /** Whether scripts run. */
  script?: boolean
  /** What it asks for in `Accept-Language`. */
  locale?: string
}

/** A browser profile of its own, until the test ends: cookies are not shared with any other. */
export async function openProfile(options: BrowserOptions = {}): Promise<BrowserContext> {
  if (!browser) throw new Error('no browser could be started')
  const { width = 1280, colorScheme = 'light', script = true, locale = 'en-US' } = options
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme,
    locale,
    javaScriptEnabled: script,
    reducedMotion: 'reduce',
  })
  context.setDefaultTimeout(20_000)
  onTestFinished(() => context.close())
  return context
}

/** Opens a page in a tab of its own. `problems` is what goes wrong on it. */
export async function openTab(context: BrowserContext, origin: string, path: string) {
  const page = await context.newPage()
  const problems = watchPage(page, origin)
  await page.goto(origin + path)
  return { page, problems }
}

/** What went wrong on a page while it was open: violations of its policy, errors, requests to other hosts. */
export function watchPage(page: Page, origin: string): string[] {
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`))
  page.on('console', (message) => {
    const text = message.text()
    // The browser itself reports every answer of 4xx and 5xx that a test provokes.
    if (message.type() === 'error' && !text.startsWith('Failed to load resource')) {
      problems.push(`console: ${text}`)
    }
  })
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) problems.push(`request: ${url}`)
  })
  return problems
}

/** Signs a person in within a profile, as a sign-in link does. */
export async function openSessionIn(
  context: BrowserContext,
  serviceUrl: string,
  { token }: { token: string },
): Promise<void> {
  await context.addCookies([{ name: 'session', value: token, url: serviceUrl, httpOnly: true }])
}
