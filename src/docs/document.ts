import { OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import { Problem } from '../http/errors.ts'
import { HEADERS, type HeaderName, referToHeaders } from '../http/headers.ts'
import { PACKAGE } from '../version.ts'
import { describeProblems, exemplifyProblems, tabulateProblems } from './problems.ts'

const DESCRIPTION = `Tells order systems what became of a payment, and gives money back.

* Every request under \`/v1\` and \`/v2\` carries \`Authorization: Bearer <API key>\`. A key has scopes, and is for
  one merchant account or for all of them; each operation names its scope.
* Amounts are exact decimals in strings; times are ISO 8601 in UTC.
* Lists are pages: ask again with \`cursor\` set to \`nextCursor\` until that is null.
* What is refused is answered with a problem (RFC 9457) that has one of the codes listed at the schema
  \`Problem\`. A path that is not here is \`not_found\`, another method \`method_not_allowed\`, with \`Allow\`.`

/** What the operations are sorted by. */
const TAGS = [
  { name: 'Transactions', description: 'What became of a payment, and the asking for it' },
  { name: 'Payments', description: 'The payments of transactions, as the gateway lists them' },
  { name: 'Refunds', description: 'Money back: asked for once, followed to its end' },
  { name: 'Events', description: 'Everything that happens, as a feed to read or to follow' },
  { name: 'Webhooks', description: 'The same, sent to you: signed, in order, until it is taken' },
  { name: 'Discrepancies', description: 'Where two sides disagree, for operators' },
  { name: 'Virtual cards', description: 'Read through from the gateway, masked' },
  { name: 'Notifications', description: "The gateway's side" },
  { name: 'Operations', description: 'For orchestrators, Prometheus and people who build on this' },
]

/**
 * The OpenAPI document of all that was declared, as JSON text. What every answer and every route of
 * merchants shares is added to each of them here.
 * @param declarations of the app, once all its routers are mounted
 */
export function writeDocument({ openAPIRegistry }: Pick<OpenAPIHono, 'openAPIRegistry'>): string {
  const complete = new OpenAPIHono()
  const description = `RFC 9457. All there are:\n\n${tabulateProblems()}`
  complete.openAPIRegistry.register('Problem', Problem.openapi({ description }))
  for (const definition of openAPIRegistry.definitions) {
    if (definition.type === 'route') {
      complete.openAPIRegistry.registerPath(completeRoute(definition.route))
    } else if (definition.type === 'webhook') {
      const { webhook } = definition
      const request = { ...webhook.request, ...nameHeaders(webhook.request?.headers) }
      // Mounted, its name was taken for a path.
      const path = webhook.path.replace(/^\//, '')
      complete.openAPIRegistry.registerWebhook({ ...webhook, path, request })
    }
  }
  const document = complete.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'IPN processor', version: PACKAGE.version, description: DESCRIPTION },
    servers: [{ url: '/', description: 'Where this document is from' }],
    tags: TAGS,
    security: [],
  })
  const used = JSON.stringify(document)
  const components = {
    ...document.components,
    schemas: { ...document.components?.schemas, ...pickUsed('schemas', describeProblems(), used) },
    headers: pickUsed('headers', HEADERS, used),
    examples: pickUsed('examples', exemplifyProblems(), used),
    securitySchemes: {
      ApiKey: {
        type: 'http',
        scheme: 'bearer',
        description: 'An API key; `npm run cli -- keys create` makes one',
      },
    },
  }
  const info = { ...document.info, license: { name: PACKAGE.license, identifier: PACKAGE.license } }
  return JSON.stringify({ ...document, info, components })
}

function pickUsed<T>(kind: string, parts: Readonly<Record<string, T>>, used: string) {
  const isUsed = (name: string) => used.includes(`"#/components/${kind}/${name}"`)
  return Object.fromEntries(Object.entries(parts).filter(([name]) => isUsed(name)))
}

/** A route with the headers that all answers have, and its scope in words. */
function completeRoute(route: RouteConfig): RouteConfig {
  const scope = route.security?.flatMap((one) => Object.values(one).flat()).join(', ')
  const description = [route.description, ...(scope ? [`Scope: \`${scope}\`.`] : [])]
  const responses = Object.entries(route.responses).map(([status, response]) => {
    if ('$ref' in response) return [status, response]
    const shared: HeaderName[] =
      scope && status !== '401'
        ? ['X-Request-Id', 'RateLimit-Policy', 'RateLimit']
        : ['X-Request-Id']
    return [status, { ...response, headers: { ...response.headers, ...referToHeaders(shared) } }]
  })
  return {
    ...route,
    description: description.filter((text) => text !== undefined).join('\n\n'),
    request: { ...route.request, ...nameHeaders(route.request?.headers) },
    responses: Object.fromEntries(responses),
  }
}

/** Request headers are declared in the small letters that they are read in. */
function nameHeaders(headers: unknown) {
  if (!(headers instanceof z.ZodObject)) return {}
  const shape = Object.entries(headers.shape).map(([name, schema]) => [
    name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()),
    schema,
  ])
  return { headers: z.object(Object.fromEntries(shape)) }
}
