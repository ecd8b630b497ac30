import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The IPN processor in demo mode, as `npm start` runs it, with its own ports and files. */
export type DemoService = {
  url: string
  sandboxUrl: string
  apiKey: string
  /** Stops it and removes its files. */
  stop(): Promise<void>
}

/**
 * Starts the service and resolves when it is ready.
 * @throws Error with its output if it exits before it is ready
 */
export async function startDemoService(): Promise<DemoService> {
  const folder = await mkdtemp(join(tmpdir(), 'order-system-'))
  // Started as root, the database runs as another user, which needs access to its files.
  await chmod(folder, 0o755)
  const apiKey = `example_${randomBytes(24).toString('base64url')}`
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/main.ts'], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    env: {
      PATH: process.env.PATH,
      DEMO: 'true',
      PORT: '0',
      SANDBOX_PORT: '0',
      DATA_DIR: join(folder, 'data'),
      LOG_LEVEL: 'error',
      API_KEY: apiKey,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    // Ctrl-C stops this program only, which then stops the service.
    detached: true,
  })
  const ended = once(child, 'exit')
  async function stop(): Promise<void> {
    child.kill('SIGTERM')
    await ended
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  let printed = ''
  for await (const text of child.stdout.setEncoding('utf8')) {
    printed += text
    if (!printed.includes('Stop with Ctrl-C.')) continue
    const url = /^Service +(\S+)/m.exec(printed)?.[1]
    const sandboxUrl = /^Sandbox +(\S+)/m.exec(printed)?.[1]
    if (url && sandboxUrl) return { url, sandboxUrl, apiKey, stop }
  }
  await stop()
  throw new Error(`The service exited before it was ready:\n${printed}`)
}
