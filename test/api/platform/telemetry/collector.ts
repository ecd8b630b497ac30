import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { listen } from '../../../support/gateway.ts'

const Attribute = z.object({ key: z.string(), value: z.record(z.string(), z.unknown()) })
const ExportedSpan = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  startTimeUnixNano: z.string(),
  attributes: z.array(Attribute),
  links: z.array(z.object({ traceId: z.string(), spanId: z.string() })),
  status: z.object({ code: z.number() }),
})
const Export = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(Attribute) }),
      scopeSpans: z.array(z.object({ spans: z.array(ExportedSpan) })),
    }),
  ),
})

export type CollectedSpan = Omit<z.infer<typeof ExportedSpan>, 'attributes'> & {
  attributes: Record<string, unknown>
}

/** A trace collector (OTLP/HTTP with JSON) that is closed after the test. */
export type Collector = {
  url: string
  spans(): CollectedSpan[]
  /** Resource attributes of the processes that sent. */
  resources(): Record<string, unknown>[]
  /** The bodies of all requests, byte for byte. */
  sent(): string
  /** The number of requests, accepted or not. */
  count(): number
  /** Answers with this status from now on; without one it never answers. */
  answerWith(status: number | undefined): void
}

export async function startCollector(): Promise<Collector> {
  const bodies: string[] = []
  let count = 0
  let status: number | undefined = 200
  const server = createServer(async (request, response) => {
    const body = await text(request)
    count += 1
    if (status === 200 && request.url === '/v1/traces') bodies.push(body)
    if (status !== undefined) response.writeHead(status).end('{}')
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  const read = () => bodies.flatMap((body) => Export.parse(JSON.parse(body)).resourceSpans)
  return {
    url,
    spans: () =>
      read()
        .flatMap((one) => one.scopeSpans)
        .flatMap((one) => one.spans)
        .map((span) => ({ ...span, attributes: readAttributes(span.attributes) })),
    resources: () => read().map(({ resource }) => readAttributes(resource.attributes)),
    sent: () => bodies.join('\n'),
    count: () => count,
    answerWith(next) {
      status = next
    },
  }
}

function readAttributes(attributes: z.infer<typeof Attribute>[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}
