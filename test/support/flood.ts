import { Pool } from 'undici'
import { z } from 'zod'

/** What a flood asks for, again and again, with so many connections from one address of this machine. */
export const Flood = z.object({
  url: z.string(),
  paths: z.array(z.string()),
  connections: z.int(),
  localAddress: z.string(),
  headers: z.record(z.string(), z.string()).default({}),
})

/** The attack comes from a process of its own, so that it does not share a thread with what is measured. */
async function run({ url, paths, connections, localAddress, headers }: z.infer<typeof Flood>) {
  const pool = new Pool(url, { connections, pipelining: 1, connect: { localAddress } })
  let answered = 0
  process.on('message', () => process.send?.(answered, () => process.exit()))
  const attack = async (nth: number): Promise<void> => {
    for (let n = nth; ; n += 1) {
      const path = paths[n % paths.length] ?? '/'
      const request = { path, method: 'GET' as const, headers }
      const response = await pool.request(request).catch(() => undefined)
      await response?.body.dump().catch(() => undefined)
      answered += 1
      if (answered === connections) process.send?.('started')
    }
  }
  await Promise.all(Array.from({ length: connections }, (_, nth) => attack(nth)))
}

process.on('disconnect', () => process.exit())
void run(Flood.parse(JSON.parse(process.argv[2] ?? '')))
