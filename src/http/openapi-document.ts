import { OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import { REFUSALS } from '../errors.ts'
import { PACKAGE } from '../version.ts'
import { HEADERS, type HeaderName, nameProblem, referToHeaders } from './describe.ts'
import { Problem } from './problems.ts'

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

/** What a parameter is, in a sentence of its own, and an example that the reference fills in. */
export type ParameterText = { description: string; example?: string }

/** Texts by the name of a parameter, or by `<operationId>.<name>` where it means something else. */
export type ParameterTable = Readonly<Record<string, ParameterText>>

const Operation = z.looseObject({
  operationId: z.string().optional(),
  parameters: z.array(z.looseObject({ name: z.string(), in: z.string() })).optional(),
})
const Paths = z.record(z.string(), z.record(z.string(), Operation))

/**
 * Gives the parameters of all operations their own texts: the same schema, such as that of an id, serves many of them.
 * @param paths of an OpenAPI document
 * @param examples take the place of those in the table, by the same names
 */
export function describeParameters(
  paths: object,
  table: ParameterTable,
  examples: ReadonlyMap<string, string>,
): object {
  return mapValues(Paths.parse(paths), (item) =>
    mapValues(item, (operation) => {
      if (!operation.parameters) return operation
      const parameters = operation.parameters.map((parameter) => {
        const names = [`${operation.operationId}.${parameter.name}`, parameter.name]
        const text = names.flatMap((name) => table[name] ?? []).at(0)
        if (!text) return parameter
        const given = names.flatMap((name) => examples.get(name) ?? []).at(0)
        const isFilter = parameter.in === 'query'
        const example = isFilter || text.example === undefined ? undefined : (given ?? text.example)
        const { description } = text
        return { ...parameter, description, ...(example === undefined ? {} : { example }) }
      })
      return { ...operation, parameters }
    }),
  )
}

function mapValues<T, U>(values: Readonly<Record<string, T>>, map: (value: T) => U) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]))
}

/** Builds the schema of each problem: the common members, its code and status, and its own. */
export function buildProblemSchemas() {
  return Object.fromEntries(
    Object.entries(REFUSALS).map(([code, { status, title, members = [] }]) => {
      const own = members.map(({ name, example }) => [name, { type: 'string', example }] as const)
      const required = members.filter(({ always }) => always).map(({ name }) => name)
      const schema = {
        description: title,
        allOf: [
          { $ref: '#/components/schemas/Problem' },
          {
            type: 'object',
            properties: {
              code: { const: code },
              status: { const: status },
              ...Object.fromEntries(own),
            },
            required: ['code', 'status', ...required],
          },
        ],
        unevaluatedProperties: false,
      }
      return [nameProblem(code), schema]
    }),
  )
}

/** Builds an example of each problem. */
export function buildProblemExamples() {
  return Object.fromEntries(
    Object.entries(REFUSALS).map(([code, { status, title, members = [], example = {} }]) => {
      const { detail = title, error } = example
      const value = {
        type: `urn:ipn-processor:problem:${code}`,
        title,
        status,
        detail,
        code,
        requestId: 'a602ca54-48ed-44d6-9f6e-0dd2a8dff9f9',
        ...(error ? { errors: [error] } : {}),
        ...Object.fromEntries(members.map((member) => [member.name, member.example])),
      }
      return [code, { summary: title, value }]
    }),
  )
}

/** Formats all problems as a Markdown table. */
export function formatProblemTable(): string {
  const rows = Object.entries(REFUSALS).map(
    ([code, { status, title }]) => `| \`${code}\` | ${status} | ${title} |`,
  )
  return ['| code | status | |', '| --- | --- | --- |', ...rows].join('\n')
}
