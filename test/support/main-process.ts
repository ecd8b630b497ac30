import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { inject, onTestFinished } from 'vitest'
import { z } from 'zod'

const Ready = z.object({ msg: z.literal('ready'), url: z.string() })

/** Starts the program as an operator would; resolves when it is ready. */
export async function startMain(env: Record<string, string>) {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const child = spawn(process.execPath, [inject('programs').service], {
    cwd: root,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  async function stop(): Promise<number | null> {
    if (child.exitCode === null) child.kill('SIGTERM')
    const [code] = await exited
    return typeof code === 'number' ? code : null
  }
  async function kill(): Promise<void> {
    child.kill('SIGKILL')
    await exited
  }
  onTestFinished(async () => {
    await stop()
  })
  for await (const line of createInterface(child.stdout)) {
    const ready = Ready.safeParse(JSON.parse(line))
    if (ready.success) return { url: ready.data.url, stop, kill }
  }
  throw new Error('the program ended before it was ready')
}
