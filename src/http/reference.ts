import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import { DomainError, type RefusalCode } from '../errors.ts'
import { createRouter } from './app.ts'
import { describePublicRefusals, describeTextResponse } from './describe.ts'
import { type ApiInfo, buildDocument } from './openapi.ts'
import { type HttpEnv, Problem } from './problems.ts'
import { matchesEtag } from './raw-response.ts'

/** What the reference fills in, by the names of parameters: the demo adds its own ids. */
export type ReferenceContext = { referenceExamples: Map<string, string> }

/** Only this origin's files, nothing inline. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const require = createRequire(import.meta.url)
const manifest = require.resolve('swagger-ui-dist/package.json')
const { version: LIBRARY_VERSION } = z.object({ version: z.string() }).parse(require(manifest))

/** Relative URLs, so that the page works below any path. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>IPN processor API</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png?v=${LIBRARY_VERSION}">
<link rel="stylesheet" href="docs/swagger-ui.css?v=${LIBRARY_VERSION}">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. The document is at <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js?v=${LIBRARY_VERSION}"></script>
<script src="docs/start.js"></script>
</body>
</html>
`

/** Without `validatorUrl: null` Swagger UI would send the document to its vendor's validator. */
const START_SCRIPT = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
})
`

const SCRIPT = 'text/javascript; charset=utf-8'

type TaggedFile = { type: string; body: Uint8Array<ArrayBuffer>; etag: string }

function tagFile(type: string, content: string | Uint8Array): TaggedFile {
  const body = Uint8Array.from(Buffer.from(content))
  return { type, body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` }
}

/** A file of Swagger UI, read from disk and tagged once, however often it is asked for. */
function libraryFile(name: string, type: string): [string, () => TaggedFile] {
  let file: TaggedFile | undefined
  return [name, () => (file ??= tagFile(type, readFileSync(join(dirname(manifest), name))))]
}

/** The files that the page uses; no other file of Swagger UI is served. */
const ASSETS = new Map([
  libraryFile('swagger-ui.css', 'text/css; charset=utf-8'),
  libraryFile('swagger-ui-bundle.js', SCRIPT),
  libraryFile('favicon-32x32.png', 'image/png'),
  ['start.js', () => tagFile(SCRIPT, START_SCRIPT)],
])

const common = { method: 'get' as const, tags: ['Operations'], security: [] }

const serves = <T extends object>(found: T, ...refusals: RefusalCode[]) => ({
  200: found,
  304: { description: 'Not changed: `If-None-Match` has its `ETag`' },
  ...describePublicRefusals(...refusals, 'rate_limited'),
})

const documentRoute = createRoute({
  ...common,
  path: '/openapi.json',
  operationId: 'readDocument',
  summary: 'Get this document',
  description: 'Generated from the schemas that parse the requests and describe the responses.',
  responses: serves(describeTextResponse('OpenAPI 3.1', z.looseObject({ openapi: z.string() }))),
})

const text = { schema: z.string() }

const pageRoute = createRoute({
  ...common,
  path: '/docs',
  operationId: 'showReference',
  summary: 'Show this document as an interactive page',
  description: 'With an API key you can send requests from it. It loads nothing from other hosts.',
  responses: serves({ description: 'The page', content: { 'text/html': text } }),
})

const assetRoute = createRoute({
  ...common,
  path: '/docs/{asset}',
  operationId: 'readReferenceAsset',
  summary: 'Get a file of the page',
  description: 'Style sheet, scripts and icon.',
  request: {
    params: z.object({
      asset: z.string().openapi({
        enum: [...ASSETS.keys()],
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
  responses: serves(
    {
      description: 'The asset',
      content: { 'text/css': text, 'text/javascript': text, 'image/png': {} },
    },
    'not_found',
    'invalid_request',
  ),
})

/** Serves the document of all routes of `app`, also of those mounted later, and the reference, without an API key. */
export function openapiRoutes(
  { referenceExamples: examples }: ReferenceContext,
  app: OpenAPIHono<HttpEnv>,
  info: ApiInfo,
) {
  let built: { file: TaggedFile; examples: number } | undefined
  const page = tagFile('text/html; charset=UTF-8', PAGE)
  const router = createRouter()
  router.openAPIRegistry.register('Problem', Problem)
  return router
    .openapi(documentRoute, (c) => {
      if (built?.examples !== examples.size) {
        const file = tagFile('application/json', buildDocument(app, info, examples))
        built = { file, examples: examples.size }
      }
      return serveFile(c, built.file)
    })
    .openapi(pageRoute, (c) => {
      c.header('content-security-policy', PAGE_POLICY)
      return serveFile(c, page)
    })
    .openapi(assetRoute, (c) => {
      const file = ASSETS.get(c.req.valid('param').asset)
      if (!file) throw new DomainError('not_found', `Nothing is served at ${c.req.path}`)
      const isCurrent = c.req.valid('query').v === LIBRARY_VERSION
      return serveFile(c, file(), isCurrent ? 'public, max-age=31536000, immutable' : 'no-cache')
    })
}

/** Answers from the bytes that were encoded once, or 304 to whoever has them. */
function serveFile(c: HttpContext<HttpEnv>, file: TaggedFile, cacheControl = 'no-cache'): Response {
  const headers = { etag: file.etag, 'cache-control': cacheControl }
  if (matchesEtag(c.req.header('if-none-match'), file.etag)) return c.body(null, 304, headers)
  return c.body(file.body, 200, { ...headers, 'content-type': file.type })
}
