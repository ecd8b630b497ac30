import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { keepCleanup } from '../processes.ts'

const SERVER = fileURLToPath(new URL('server.mjs', import.meta.url))
const PACKAGES = ['@supabase/stripe-sync-engine@>=0.48.5', 'stripe', 'fastify@5']
const TIMEOUT_MS = 120_000

export type Installed = {
  /** The file to run, and what it runs. */
  server: string
  version: string
  remove(): Promise<void>
}

/**
 * Installs `stripe-sync-engine` with npm into a folder of its own: it is no dependency of this project.
 * @returns the reason if it cannot be installed
 */
export async function installStripe(): Promise<Installed | string> {
  const folder = await mkdtemp(join(tmpdir(), 'ipn-bench-stripe-'))
  const forget = keepCleanup(() => rmSync(folder, { recursive: true, force: true }))
  const remove = async () => {
    await rm(folder, { recursive: true, force: true })
    forget()
  }
  try {
    await writeFile(join(folder, 'package.json'), '{"private":true,"type":"module"}\n')
    const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...PACKAGES]
    await promisify(execFile)('npm', args, { cwd: folder, timeout: TIMEOUT_MS })
    const manifest = join(folder, 'node_modules/@supabase/stripe-sync-engine/package.json')
    const { version }: { version: string } = JSON.parse(await readFile(manifest, 'utf8'))
    const server = join(folder, 'server.mjs')
    await copyFile(SERVER, server)
    return { server, version, remove }
  } catch (error) {
    await remove()
    const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
    return reason
  }
}
