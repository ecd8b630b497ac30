import { OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import { PACKAGE } from '../../version.ts'
import { HEADERS, type HeaderName, referToHeaders } from '../http/headers.ts'
import { Problem } from '../http/problems.ts'
import { describeParameters, type ParameterTable } from './parameters.ts'
import { buildProblemExamples, buildProblemSchemas, formatProblemTable } from './problems.ts'

/** The parts of the document that concern the API as a whole. */
export type ApiInfo = {
  title: string
  /** Markdown. */
  description: string
  /** The groups of operations. */
  tags: readonly { name: string; description: string }[]
  /** The sentences of parameters. */
  parameters: ParameterTable
}

/**
 * Builds the OpenAPI document of all declared routes, as JSON text. Headers shared by all responses and the
 * scopes of routes are added here.
 * @param app with all its routers mounted
 * @param examples replace those of the parameters that have one, by the same names
 */
export function buildDocument(
  { openAPIRegistry }: Pick<OpenAPIHono, 'openAPIRegistry'>,
  { title, description: overview, tags, parameters }: ApiInfo,
  examples: ReadonlyMap<string, string> = new Map(),
): string {
  const complete = new OpenAPIHono()
  const description = `RFC 9457. All problems:\n\n${formatProblemTable()}`
  complete.openAPIRegistry.register('Problem', Problem.openapi({ description }))
  for (const definition of openAPIRegistry.definitions) {
    if (definition.type === 'route') {
      complete.openAPIRegistry.registerPath(completeRoute(definition.route))
    } else if (definition.type === 'webhook') {
      const { webhook } = definition
      const request = { ...webhook.request, ...capitaliseHeaders(webhook.request?.headers) }
      // Mounting a router adds a slash to the webhook's name, as to a path.
      const path = webhook.path.replace(/^\//, '')
      complete.openAPIRegistry.registerWebhook({ ...webhook, path, request })
    }
  }
  const document = complete.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title, version: PACKAGE.version, description: overview },
    servers: [{ url: '/', description: 'The origin of this document' }],
    tags: [...tags],
    security: [],
  })
  const used = JSON.stringify(document)
  const components = {
    ...document.components,
    schemas: {
      ...document.components?.schemas,
      ...pickUsed('schemas', buildProblemSchemas(), used),
    },
    headers: pickUsed('headers', HEADERS, used),
    examples: pickUsed('examples', buildProblemExamples(), used),
    securitySchemes: {
      ApiKey: {
        type: 'http',
        scheme: 'bearer',
        description: 'An API key; create one with `npm run cli -- keys create`',
      },
    },
  }
  const info = { ...document.info, license: { name: PACKAGE.license, identifier: PACKAGE.license } }
  const paths = describeParameters(document.paths ?? {}, parameters, examples)
  return JSON.stringify({ ...document, info, paths, components })
}

function pickUsed<T>(kind: string, parts: Readonly<Record<string, T>>, used: string) {
  const isUsed = (name: string) => used.includes(`"#/components/${kind}/${name}"`)
  return Object.fromEntries(Object.entries(parts).filter(([name]) => isUsed(name)))
}

/** Adds the headers that all responses have, and the scope to the description. */
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
    request: { ...route.request, ...capitaliseHeaders(route.request?.headers) },
    responses: Object.fromEntries(responses),
  }
}

/** Capitalises the names of request headers, which are declared in the lower case that Hono reads. */
function capitaliseHeaders(headers: unknown) {
  if (!(headers instanceof z.ZodObject)) return {}
  const shape = Object.entries(headers.shape).map(([name, schema]) => [
    name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()),
    schema,
  ])
  return { headers: z.object(Object.fromEntries(shape)) }
}
