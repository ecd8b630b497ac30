import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import { DomainError } from '../errors.ts'
import { createRouter } from './app.ts'
import { describePublicRefusals, describeTextResponse } from './describe.ts'
import { type ApiInfo, buildDocument } from './openapi-document.ts'
import type { HttpEnv } from './problems.ts'
import {
  ASSET_NAMES,
  LIBRARY_VERSION,
  PAGE_POLICY,
  readAsset,
  renderPage,
  type TaggedFile,
  tagFile,
} from './reference-page.ts'

const tags = ['Operations']

const UNCHANGED = { description: 'Not changed: `If-None-Match` has its `ETag`' }

const document = createRoute({
  method: 'get',
  path: '/openapi.json',
  operationId: 'readDocument',
  summary: 'Get this document',
  description: 'Generated from the schemas that parse the requests and describe the responses.',
  tags,
  security: [],
  responses: {
    200: describeTextResponse('OpenAPI 3.1', z.looseObject({ openapi: z.string() })),
    304: UNCHANGED,
    ...describePublicRefusals('rate_limited'),
  },
})

const page = createRoute({
  method: 'get',
  path: '/docs',
  operationId: 'showReference',
  summary: 'Show this document as an interactive page',
  description: 'With an API key you can send requests from it. It loads nothing from other hosts.',
  tags,
  security: [],
  responses: {
    200: { description: 'The page', content: { 'text/html': { schema: z.string() } } },
    304: UNCHANGED,
    ...describePublicRefusals('rate_limited'),
  },
})

const asset = createRoute({
  method: 'get',
  path: '/docs/{asset}',
  operationId: 'readReferenceAsset',
  summary: 'Get a file of the page',
  description: 'Style sheet, scripts and icon.',
  tags,
  security: [],
  request: {
    params: z.object({
      asset: z.string().openapi({
        enum: ASSET_NAMES,
        description: 'The file name',
        example: 'swagger-ui.css',
      }),
    }),
    query: z.object({
      v: z.string().optional().openapi({
        description: 'The version: with the current one the response may be cached for a year',
      }),
    }),
  },
  responses: {
    200: {
      description: 'The asset',
      content: {
        'text/css': { schema: z.string() },
        'text/javascript': { schema: z.string() },
        'image/png': {},
      },
    },
    304: UNCHANGED,
    ...describePublicRefusals('not_found', 'invalid_request', 'rate_limited'),
  },
})

/** What the reference fills in, by the names of parameters. The demo adds its own ids. */
export type ReferenceContext = { referenceExamples: Map<string, string> }

/**
 * Serves the OpenAPI document and the interactive reference, without an API key.
 * @param app whose routes the document describes, including those mounted later
 */
export function openapiRoutes(
  { referenceExamples: examples }: ReferenceContext,
  app: OpenAPIHono<HttpEnv>,
  info: ApiInfo,
) {
  let built: { file: TaggedFile; examples: number } | undefined
  const reference = tagFile('text/html; charset=UTF-8', renderPage(LIBRARY_VERSION))
  return createRouter()
    .openapi(document, (c) => {
      if (built?.examples !== examples.size) {
        const file = tagFile('application/json', buildDocument(app, info, examples))
        built = { file, examples: examples.size }
      }
      return serveFile(c, built.file)
    })
    .openapi(page, (c) => {
      c.header('content-security-policy', PAGE_POLICY)
      return serveFile(c, reference)
    })
    .openapi(asset, async (c) => {
      const name = c.req.valid('param').asset
      const found = await readAsset(name)
      if (!found) throw new DomainError('not_found', `Nothing is served at ${c.req.path}`)
      const isCurrent = c.req.valid('query').v === LIBRARY_VERSION
      return serveFile(c, found, isCurrent ? 'public, max-age=31536000, immutable' : 'no-cache')
    })
}

/** Answers from the bytes that were encoded once, or 304 to whoever has them: the document alone has 400 KB. */
function serveFile(c: HttpContext<HttpEnv>, file: TaggedFile, cacheControl = 'no-cache'): Response {
  const headers = { etag: file.etag, 'cache-control': cacheControl }
  const known = c.req.header('if-none-match')?.split(',') ?? []
  if (known.some((tag) => tag.trim().replace(/^W\//, '') === file.etag)) {
    return c.body(null, 304, headers)
  }
  return c.body(file.body, 200, { ...headers, 'content-type': file.type })
}
