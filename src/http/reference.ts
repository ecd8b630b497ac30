import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import { DomainError } from '../errors.ts'
import { createRouter } from './app.ts'
import { describeEmptyResponse, describePublicRefusals, describeTextResponse } from './describe.ts'
import { type ApiInfo, buildDocument } from './openapi.ts'
import { type HttpEnv, Problem } from './problems.ts'
import { matchesEtag } from './raw-response.ts'

/** Replaces the examples of parameters, by name. The demo fills in ids of its own. */
export type ReferenceContext = { referenceExamples: Map<string, string> }

const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const LIBRARY = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

/** The URLs are relative, so that the page works below any path. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>IPN processor API</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. The document is at <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`

/** Without `validatorUrl: null`, Swagger UI would send the document to its vendor's validator. */
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

type File = { type: string; body: Uint8Array<ArrayBuffer>; etag: string }

function tagFile(type: string, content: string | Uint8Array): File {
  const body = Uint8Array.from(Buffer.from(content))
  return { type, body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` }
}

const SCRIPT = 'text/javascript; charset=utf-8'

/** The files that the page uses, read from disk on first use. No other file of Swagger UI is served. */
const FILES = new Map<string, { type: string; file?: File }>([
  ['swagger-ui.css', { type: 'text/css; charset=utf-8' }],
  ['swagger-ui-bundle.js', { type: SCRIPT }],
  ['favicon-32x32.png', { type: 'image/png' }],
  ['start.js', { type: SCRIPT, file: tagFile(SCRIPT, START_SCRIPT) }],
])

const documentRoute = createRoute({
  method: 'get',
  path: '/openapi.json',
  operationId: 'readDocument',
  tags: ['Operations'],
  security: [],
  summary: 'Get this document',
  description:
    'Generated from the schemas that parse the requests and describe the responses. `/docs` shows it as a page.',
  responses: {
    200: describeTextResponse('OpenAPI 3.1', z.looseObject({ openapi: z.string() }), 'ETag'),
    304: describeEmptyResponse('Not changed: `If-None-Match` has its `ETag`', 'ETag'),
    ...describePublicRefusals('rate_limited'),
  },
})

/** Serves the document of all routes of `app`, even those mounted later, and the reference. Needs no API key. */
export function openapiRoutes(
  { referenceExamples: examples }: ReferenceContext,
  app: OpenAPIHono<HttpEnv>,
  info: ApiInfo,
) {
  let built: { file: File; examples: number } | undefined
  const page = tagFile('text/html; charset=UTF-8', PAGE)
  const router = createRouter()
  router.openAPIRegistry.register('Problem', Problem)
  router.openapi(documentRoute, (c) => {
    if (built?.examples !== examples.size) {
      const file = tagFile('application/json', buildDocument(app, info, examples))
      built = { file, examples: examples.size }
    }
    return serveFile(c, built.file)
  })
  router.get('/docs', (c) => {
    c.header('content-security-policy', PAGE_POLICY)
    return serveFile(c, page)
  })
  router.get('/docs/:asset', (c) => {
    const name = c.req.param('asset')
    const known = FILES.get(name)
    if (!known) throw new DomainError('not_found', `Nothing is served at ${c.req.path}`)
    known.file ??= tagFile(known.type, readFileSync(join(LIBRARY, name)))
    return serveFile(c, known.file)
  })
  return router
}

function serveFile(c: HttpContext<HttpEnv>, { type, body, etag }: File): Response {
  const headers = { etag, 'cache-control': 'no-cache' }
  if (matchesEtag(c.req.header('if-none-match'), etag)) return c.body(null, 304, headers)
  return c.body(body, 200, { ...headers, 'content-type': type })
}
