import { subscribe } from 'node:diagnostics_channel'
import { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import { createApp } from '../../../src/app.ts'
import type { Service } from '../../../src/service.ts'
import { type Answer, type Check, prepareCheck } from './check.ts'
import { addFault, addReading } from './faults.ts'

const OF_WORKERS = ['/healthz', '/readyz', '/metrics']

/** Services of this process, by port. */
const watched = new Map<number, Check>()
/** Those in processes of their own. */
const origins = new Set<string>()
let document: string | undefined
const checks = new Map<boolean, Check>()

const Exchange = z.object({
  request: z.instanceof(IncomingMessage),
  response: z.instanceof(ServerResponse),
})

/** Every answer that this service gives from now on is held against the API's document. */
export async function watchService({ ctx, url }: Pick<Service, 'ctx' | 'url'>): Promise<void> {
  const served = createApp({ ...ctx, config: { ...ctx.config, ROLE: 'web' } })
  document ??= await (await served.request('/openapi.json')).text()
  if (watched.size === 0) subscribe('http.server.request.start', listen)
  watched.set(Number(new URL(url).port), shareCheck(document, ctx.config.ROLE === 'worker'))
}

function shareCheck(text: string, worker: boolean): Check {
  const isServed = (path: string) => !worker || OF_WORKERS.includes(path)
  const check = checks.get(worker) ?? prepareCheck(text, isServed)
  checks.set(worker, check)
  return check
}

/** The same for a service in a process of its own, with what is asked of it by `fetch`. */
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

/** Servers of a test's own, the sandbox gateway among them, are on other ports. */
function listen(message: unknown): void {
  const { request, response } = Exchange.parse(message)
  const check = watched.get(request.socket.localPort ?? 0)
  if (!check) return
  const parts: Buffer[] = []
  const { write, end } = response
  const take = (part: unknown) => {
    if (typeof part === 'string' || part instanceof Uint8Array) parts.push(Buffer.from(part))
  }
  // Held against the document before its last byte leaves: whoever waits for it finds the fault told.
  Object.assign(response, {
    write: (...given: unknown[]) => {
      take(given[0])
      return Reflect.apply(write, response, given)
    },
    end: (...given: unknown[]) => {
      take(given[0])
      const { method = '', url: target = '' } = request
      const told = Object.entries(response.getHeaders()).map(([name, value]) => [name, `${value}`])
      const headers = Object.fromEntries(told)
      // What is no HTTP/1.1 is refused by Node itself, before any of our headers.
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
    if (!origins.has(origin)) return response
    const { status, headers } = response
    const method = init?.method ?? 'GET'
    const read = response.clone().text()
    addReading(
      read.then(
        (body) => {
          const target = pathname + search
          hold({ method, target, status, headers: Object.fromEntries(headers), body }, check)
        },
        // The process was killed while it answered.
        () => {},
      ),
    )
    return response
  }
}
