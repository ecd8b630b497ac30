import { OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import { PACKAGE } from '../version.ts'
import { HEADERS, referToHeaders } from './describe.ts'
import { type HttpEnv, Problem } from './problems.ts'

/** The parts of the document that concern the API as a whole. */
export type ApiInfo = {
  title: string
  /** Markdown. */
  description: string
  /** The groups of operations. */
  tags: readonly { name: string; description: string }[]
  parameters: ParameterTable
}

/**
 * What each parameter is, by its name, or by `<operationId>.<name>` where that means something else, with an example for
 * those in paths: the same schema, such as that of an id, serves many parameters.
 */
export type ParameterTable = Readonly<Record<string, string | [text: string, example: string]>>

/**
 * Builds the document of all declared routes, as JSON text. What all responses share is added here.
 * @param examples replace those of the parameters that have one, by the same names
 */
export function buildDocument(
  { openAPIRegistry }: Pick<OpenAPIHono<HttpEnv>, 'openAPIRegistry'>,
  { title, description, tags, parameters }: ApiInfo,
  examples: ReadonlyMap<string, string>,
): string {
  const complete = new OpenAPIHono()
  complete.openAPIRegistry.register('Problem', Problem)
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
    info: { title, version: PACKAGE.version, description },
    servers: [{ url: '/', description: 'The origin of this document' }],
    tags: [...tags],
    security: [],
  })
  const used = JSON.stringify(document)
  const isUsed = ([name]: [string, unknown]) => used.includes(`"#/components/headers/${name}"`)
  const ApiKey = {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key; create one with `npm run cli -- keys create`',
  }
  const components = {
    ...document.components,
    headers: Object.fromEntries(Object.entries(HEADERS).filter(isUsed)),
    securitySchemes: { ApiKey },
  }
  const info = { ...document.info, license: { name: PACKAGE.license, identifier: PACKAGE.license } }
  const paths = describeParameters(document.paths ?? {}, parameters, examples)
  return JSON.stringify({ ...document, info, paths, components })
}

/** Adds the headers that all responses have, and the scope to the description. */
function completeRoute(route: RouteConfig): RouteConfig {
  const scope = route.security?.flatMap((one) => Object.values(one).flat()).join(', ')
  const description = [route.description, scope && `Scope: \`${scope}\`.`].filter(Boolean)
  const responses = Object.entries(route.responses).map(([status, response]) => {
    if ('$ref' in response) return [status, response]
    const limits = scope && status !== '401' ? (['RateLimit-Policy', 'RateLimit'] as const) : []
    const shared = referToHeaders(['X-Request-Id', ...limits])
    return [status, { ...response, headers: { ...response.headers, ...shared } }]
  })
  return {
    ...route,
    description: description.join('\n\n'),
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

const Operation = z.looseObject({
  operationId: z.string().optional(),
  parameters: z.array(z.looseObject({ name: z.string(), in: z.string() })).optional(),
})
const Paths = z.record(z.string(), z.record(z.string(), Operation))

/** Gives the parameters of all operations their own texts. */
function describeParameters(
  paths: object,
  table: ParameterTable,
  examples: ReadonlyMap<string, string>,
): object {
  const described = Paths.parse(paths)
  for (const operation of Object.values(described).flatMap((item) => Object.values(item))) {
    operation.parameters = operation.parameters?.map((parameter) => {
      const own = `${operation.operationId}.${parameter.name}`
      const found = table[own] ?? table[parameter.name]
      if (found === undefined) return parameter
      const [description, example] = [found].flat()
      if (parameter.in === 'query' || example === undefined) return { ...parameter, description }
      const given = examples.get(own) ?? examples.get(parameter.name) ?? example
      return { ...parameter, description, example: given }
    })
  }
  return described
}
