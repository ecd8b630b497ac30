import { type OpenAPIHono, z } from '@hono/zod-openapi'
import { PACKAGE } from '../version.ts'
import { HEADERS, referToHeaders } from './describe.ts'
import type { HttpEnv } from './problems.ts'

/** What the document says about the API as a whole. */
export type ApiInfo = {
  title: string
  /** Markdown. */
  description: string
  tags: { name: string; description: string }[]
  parameters: ParameterTable
}

/** Descriptions by parameter name, or `<operationId>.<name>` where that differs; for paths also an example. */
export type ParameterTable = Readonly<Record<string, string | [text: string, example: string]>>

const SECURITY_SCHEMES = {
  ApiKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key; create one with `npm run cli -- keys create`',
  },
}

/**
 * Builds the document of all declared routes as JSON text, and adds what all responses have in common.
 * @param examples overrides the examples of parameters that have one, by the same names
 */
export function buildDocument(
  app: Pick<OpenAPIHono<HttpEnv>, 'getOpenAPI31Document'>,
  { title, description, tags, parameters }: ApiInfo,
  examples: ReadonlyMap<string, string>,
): string {
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title, version: PACKAGE.version, description },
    servers: [{ url: '/', description: 'The origin of this document' }],
    tags,
    security: [],
  })
  const paths = Items.parse(document.paths)
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item))) {
    completeOperation(operation, parameters, examples)
  }
  const webhooks = Object.entries(Items.parse(document.webhooks)).map(([path, item]) => {
    for (const { parameters: headers = [] } of Object.values(item)) headers.forEach(capitalise)
    // Mounting a router adds a slash to the names of webhooks, as to paths.
    return [path.replace(/^\//, ''), item]
  })
  const used = JSON.stringify([paths, webhooks])
  const isUsed = ([name]: [string, unknown]) => used.includes(`"#/components/headers/${name}"`)
  return JSON.stringify({
    ...document,
    info: { ...document.info, license: { name: PACKAGE.license, identifier: PACKAGE.license } },
    paths,
    components: {
      ...document.components,
      headers: Object.fromEntries(Object.entries(HEADERS).filter(isUsed)),
      securitySchemes: SECURITY_SCHEMES,
    },
    webhooks: Object.fromEntries(webhooks),
  })
}

const Operation = z.looseObject({
  operationId: z.string().optional(),
  description: z.string().optional(),
  security: z.array(z.record(z.string(), z.array(z.string()))).optional(),
  parameters: z.array(z.looseObject({ name: z.string(), in: z.string() })).optional(),
  responses: z.record(z.string(), z.looseObject({ headers: z.looseObject({}).optional() })),
})
type Operation = z.infer<typeof Operation>
const Items = z.record(z.string(), z.record(z.string(), Operation))

/** Adds the scope to the description, the common headers to the responses, and descriptions to the parameters. */
function completeOperation(
  operation: Operation,
  table: ParameterTable,
  examples: ReadonlyMap<string, string>,
): void {
  const scope = operation.security?.flatMap((one) => Object.values(one).flat()).join(', ')
  const said = [operation.description, scope && `Scope: \`${scope}\`.`].filter(Boolean)
  operation.description = said.join('\n\n')
  for (const response of Object.values(operation.responses)) {
    const limits = scope ? (['RateLimit-Policy', 'RateLimit'] as const) : []
    response.headers = { ...response.headers, ...referToHeaders(['X-Request-Id', ...limits]) }
  }
  for (const parameter of operation.parameters ?? []) {
    capitalise(parameter)
    const own = `${operation.operationId}.${parameter.name}`
    const [description, example] = [table[own] ?? table[parameter.name]].flat()
    if (description !== undefined) parameter.description = description
    if (parameter.in === 'query' || example === undefined) continue
    parameter.example = examples.get(own) ?? examples.get(parameter.name) ?? example
  }
}

/** Capitalises the name of a request header, which routes declare in lower case, as Hono reads it. */
function capitalise(parameter: { name: string; in: string }): void {
  if (parameter.in !== 'header') return
  parameter.name = parameter.name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase())
}
