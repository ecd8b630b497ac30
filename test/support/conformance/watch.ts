import { subscribe } from 'node:diagnostics_channel'
import { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import { createApp } from '../../../src/app.ts'
import type { Service } from '../../../src/service.ts'
import { type Answer, type Check, prepareCheck } from './check.ts'
import { addFault, addReading } from './faults.ts'

const OF_WORKERS = ['/healthz', '/readyz', '/metrics']

/** Services in this process, by port. */
const watched = new Map<number, Check>()
let listens = false
/** Services in other processes. */
const origins = new Set<string>()
let document: string | undefined
const checks = new Map<boolean, Check>()

const Exchange = z.object({
  request: z.instanceof(IncomingMessage),
  response: z.instanceof(ServerResponse),
})

/**
 * Checks every response of this service against the API's document until it is stopped by what is returned: its
 * port may then go to another server of a test.
 */
export async function watchService<S extends Service>(service: S): Promise<S> {
  const { ctx } = service
  const port = Number(new URL(service.url).port)
  document ??= await buildDocument(ctx)
  if (!listens) subscribe('http.server.request.start', listen)
  listens = true
  const shared = shareCheck(document, ctx.config.ROLE === 'worker')
  const own: Check = (answer) => shared(answer)
  watched.set(port, own)
  const stop = () =>
    service.stop().finally(() => {
      // Another service may have the port by now.
      if (watched.get(port) === own) watched.delete(port)
    })
  return { ...service, stop }
}

/** Of the routes of `ROLE=web`, which are those of every role. */
async function buildDocument(ctx: Service['ctx']): Promise<string> {
  const served = createApp({ ...ctx, config: { ...ctx.config, ROLE: 'web' } })
  return await (
    await served.request('/openapi.json', {}, { incoming: { socket: {}, headers: {} } })
  ).text()
}

function shareCheck(text: string, worker: boolean): Check {
  const isServed = (path: string) => !worker || OF_WORKERS.includes(path)
  const check = checks.get(worker) ?? prepareCheck(text, isServed)
  checks.set(worker, check)
  return check
}

/** The same for a service in another process, for the requests made with `fetch`. */
export async function watchProcess(url: string): Promise<void> {
  const asked = await fetch(`${url}/openapi.json`, { headers: { connection: 'close' } })
  const text = await asked.text()
  if (asked.status !== 200) return
  document ??= text
  if (origins.size === 0) {
    globalThis.fetch = watchFetch(globalThis.fetch, shareCheck(document, false))
  }
  origins.add(new URL(url).origin)
}

function hold(answer: Answer, check: Check): void {
  const fault = check(answer)
  if (fault === undefined) return
  const { method, target, status, body } = answer
  addFault(`${status} of ${method} ${target} ${fault}: ${body.slice(0, 500)}`)
}

/** Other servers of a test, such as the sandbox gateway, are on other ports. */
function listen(message: unknown): void {
  const { request, response } = Exchange.parse(message)
  const check = watched.get(request.socket.localPort ?? 0)
  if (!check) return
  const parts: Buffer[] = []
  const { write, end, writeHead } = response
  const lines: [string, string][] = []
  const take = (part: unknown) => {
    if (typeof part === 'string' || part instanceof Uint8Array) parts.push(Buffer.from(part))
  }
  // Checked before the last byte is sent, so that the violation is recorded when the client has the response.
  Object.assign(response, {
    // What is given here is in no `getHeaders()`: /ipn gives names and values in turn, reads of a transaction an object.
    writeHead: (...given: unknown[]) => {
      const last = given.at(-1)
      const flat = z.array(z.string()).safeParse(last).data ?? []
      for (let at = 0; at < flat.length; at += 2) lines.push([flat[at] ?? '', flat[at + 1] ?? ''])
      const members = z.record(z.string(), z.unknown()).safeParse(last).data ?? {}
      for (const [name, value] of Object.entries(members)) {
        if (value !== undefined) lines.push([name.toLowerCase(), `${value}`])
      }
      return Reflect.apply(writeHead, response, given)
    },
    write: (...given: unknown[]) => {
      take(given[0])
      return Reflect.apply(write, response, given)
    },
    end: (...given: unknown[]) => {
      take(given[0])
      const { method = '', url: target = '' } = request
      const set = Object.entries(response.getHeaders()).map(([name, value]) => [name, `${value}`])
      const headers: Record<string, string> = Object.fromEntries([...set, ...lines])
      // Node itself refuses what is not HTTP/1.1, before any of our headers are set.
      const ours = 'content-security-policy' in headers
      const { statusCode: status } = response
      const body = Buffer.concat(parts).toString()
      if (ours) hold({ method, target, status, headers, body }, check)
      return Reflect.apply(end, response, given)
    },
  })
}

function watchFetch(inner: typeof fetch, check: Check): typeof fetch {
  return async (input, init) => {
    const response = await inner(input, init)
    const { origin, pathname, search } = new URL(response.url)
    // The port of a process that has ended may go to another server of a test, whose headers are not ours.
    if (!origins.has(origin) || !response.headers.has('content-security-policy')) return response
    const { status, headers } = response
    const method = init?.method ?? 'GET'
    const read = response.clone().text()
    addReading(
      read.then(
        (body) => {
          const target = pathname + search
          hold({ method, target, status, headers: Object.fromEntries(headers), body }, check)
        },
        // The process was killed while it responded.
        () => {},
      ),
    )
    return response
  }
}
