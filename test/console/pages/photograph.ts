import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BrowserContext } from 'playwright-core'
import { launchBrowser } from '../../support/launch-browser.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { listPages } from './list-pages.ts'
import { playSample } from './play-sample.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Every photograph; those that the documentation shows are copied beside it. */
const FOLDER = join(ROOT, 'photographs')
const SHOWN = readFileSync(join(ROOT, 'docs/console.md'), 'utf8')

/** The demo's merchant account. */
const MERCHANT = 'DEMO'

/** What the demo prints that the photographs need. */
type Demo = { link: string; service: string; sandbox: string; key: string; stop(): Promise<void> }

async function startDemo(): Promise<Demo> {
  const dataDir = mkdtempSync(join(tmpdir(), 'photographs-'))
  const env = {
    ...{ PATH: process.env.PATH, HOME: process.env.HOME, DEMO: 'true', DATA_DIR: dataDir },
    ...{ PORT: '3471', SANDBOX_PORT: '4471', REFUND_APPROVAL_ABOVE: 'VND:5000000' },
    ...{ REFUND_CONFIRM_FAILED_MS: '200', REFUND_BACKOFF_MS: '50' },
  }
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/main.ts'], { cwd: ROOT, env })
  let printed = ''
  child.stdout.on('data', (part) => {
    printed += part
  })
  child.stderr.pipe(process.stderr)
  await waitUntil(() => printed.includes('Stop with Ctrl-C'), {
    ...{ timeoutMs: 60_000, everyMs: 50, what: 'the demo runs' },
  })
  const find = (pattern: RegExp) => pattern.exec(printed)?.[0] ?? ''
  return {
    link: find(/http:\/\/localhost:\d+\/console\/sign-in\/\S+/),
    service: 'http://127.0.0.1:3471',
    sandbox: 'http://127.0.0.1:4471',
    key: find(/ipn_demo_\S+/),
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

async function play({ service, sandbox, key }: Demo) {
  return await playSample({
    api: (path, init = {}) =>
      fetch(service + path, {
        ...init,
        headers: {
          ...Object.fromEntries(new Headers(init.headers)),
          authorization: `Bearer ${key}`,
        },
      }),
    async control(method, path, body) {
      const response = await fetch(`${sandbox}/sandbox${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return await response.json()
    },
  })
}

async function signIn(context: BrowserContext, link: string): Promise<string> {
  const page = await context.newPage()
  await page.goto(link)
  await page.getByRole('main').getByRole('button').click()
  await page.close()
  return new URL(link).origin
}

/** Photographs every page of the demo's console, light and dark. */
async function photograph(): Promise<void> {
  const demo = await startDemo()
  const browser = await launchBrowser()
  try {
    const sample = await play(demo)
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    const origin = await signIn(context, demo.link)
    mkdirSync(FOLDER, { recursive: true })
    for (const { name, path } of listPages(sample, MERCHANT)) {
      const page = await context.newPage()
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        await page.goto(origin + path)
        const photo = `${name}-${colorScheme}.png`
        await page.screenshot({ path: join(FOLDER, photo), fullPage: true })
        if (SHOWN.includes(`console/${photo}`)) {
          copyFileSync(join(FOLDER, photo), join(ROOT, 'docs/console', photo))
        }
        console.log(join(FOLDER, photo))
      }
      await page.close()
    }
  } finally {
    await browser.close()
    await demo.stop()
  }
}

await photograph()
