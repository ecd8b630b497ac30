import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'
import { z } from 'zod'

/** What a flood sends, in turn, from a process of its own: it does not share a thread with what is measured. */
const Flood = z.object({
  url: z.string(),
  path: z.string(),
  method: z.enum(['GET', 'POST']).default('GET'),
  headers: z.record(z.string(), z.string()).default({}),
  body: z.string().optional(),
  /** The senders, for a service that trusts this host as its proxy. */
  addresses: z.array(z.string()).default([]),
  connections: z.int(),
  /** The address of this machine that it comes from. */
  localAddress: z.string(),
  /** Requests each second; without it each connection sends as soon as it has an answer. */
  perS: z.int().optional(),
})
export type Flood = z.input<typeof Flood>

/** How many requests had which status; 0 for a connection that was closed without an answer. */
export const Answers = z.record(z.string(), z.number())
export type Answers = z.infer<typeof Answers>

async function run(flood: z.infer<typeof Flood>, stopping: AbortSignal): Promise<Answers> {
  const { connections, localAddress, perS } = flood
  const pool = new Pool(flood.url, { connections, pipelining: 1, localAddress })
  const answers: Answers = {}
  let sent = 0
  let answered = 0
  const send = async () => {
    const address = flood.addresses[sent % flood.addresses.length]
    sent += 1
    const forwarded = address === undefined ? {} : { 'x-forwarded-for': address }
    const { path, method, body = null } = flood
    const request = { path, method, body, headers: { ...flood.headers, ...forwarded } }
    const status = await pool
      .request(request)
      .then((response) => response.body.dump().then(() => response.statusCode))
      .catch(() => 0)
    answers[status] = (answers[status] ?? 0) + 1
    answered += 1
    if (answered === Math.min(connections, perS ?? connections)) process.send?.('started')
  }
  if (perS === undefined) {
    const sendOn = async () => {
      while (!stopping.aborted) await send()
    }
    await Promise.all(Array.from({ length: connections }, sendOn))
    return answers
  }
  const sending: Promise<void>[] = []
  const began = performance.now()
  while (!stopping.aborted) {
    while (sending.length < ((performance.now() - began) / 1_000) * perS) sending.push(send())
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await Promise.all(sending)
  return answers
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const stopping = new AbortController()
  process.on('message', (message) => {
    if (message === 'stop') stopping.abort()
    else {
      void run(Flood.parse(message), stopping.signal).then((answers) =>
        process.send?.(answers, () => process.exit()),
      )
    }
  })
  process.on('disconnect', () => process.exit())
  process.send?.('ready')
}
