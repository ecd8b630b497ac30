import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'

/** What a flood sends to `/ipn`, from a process of its own. */
export type Flood = {
  url: string
  perS: number
  forMs: number
  /** Sent in turn. */
  bodies: readonly string[]
  contentType: string
  /** The senders, in turn: for a service that trusts this host as its proxy. */
  addresses: readonly string[]
}

/** How many requests had which status; 0 for a connection that was closed without an answer. */
export type FloodResult = Record<string, number>

const IS_CHILD = process.argv[1] === fileURLToPath(import.meta.url)

/** Starts a flood; resolves when the first requests are under way. */
export async function startFlood(flood: Flood): Promise<{ ended: Promise<FloodResult> }> {
  const child: ChildProcess = fork(fileURLToPath(import.meta.url), [], {
    execArgv: ['--import', 'tsx'],
  })
  await once(child, 'message')
  const ended = once(child, 'message').then(([result]) => result as FloodResult)
  child.send(flood)
  return { ended }
}

async function run({ url, perS, forMs, bodies, contentType, addresses }: Flood) {
  const pool = new Pool(url, { connections: 100, pipelining: 1 })
  const result: FloodResult = {}
  const sending: Promise<void>[] = []
  const started = performance.now()
  const send = async (n: number) => {
    const headers = {
      'content-type': contentType,
      'x-forwarded-for': addresses[n % addresses.length] ?? '',
    }
    const body = bodies[n % bodies.length] ?? ''
    const status = await pool.request({ path: '/ipn', method: 'POST', headers, body }).then(
      async (answer) => {
        await answer.body.dump()
        return answer.statusCode
      },
      () => 0,
    )
    result[status] = (result[status] ?? 0) + 1
  }
  for (let ms = 0; ms < forMs; ms = performance.now() - started) {
    while (sending.length < (ms / 1_000) * perS) sending.push(send(sending.length))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await Promise.all(sending)
  await pool.destroy()
  return result
}

if (IS_CHILD) {
  process.on('message', (flood: Flood) => {
    void run(flood).then((result) => process.send?.(result, () => process.exit()))
  })
  process.on('disconnect', () => process.exit())
  process.send?.('ready')
}
