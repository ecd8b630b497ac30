import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { DomainError } from '../errors.ts'
import type { AppEnv } from '../http/app-env.ts'
import { answersText, createRouter } from '../http/input.ts'
import { refusesAnyone } from '../http/refusals.ts'
import { ASSET_NAMES, LIBRARY_VERSION, readAsset } from './assets.ts'
import { writeDocument } from './document.ts'
import { PAGE_POLICY, writePage } from './page.ts'

const tags = ['Operations']

const document = createRoute({
  method: 'get',
  path: '/openapi.json',
  operationId: 'readDocument',
  summary: 'This document',
  description: 'Made from the schemas that requests are parsed with and answers are described by.',
  tags,
  security: [],
  responses: {
    200: answersText('OpenAPI 3.1', z.looseObject({ openapi: z.string() })),
    ...refusesAnyone(),
  },
})

const page = createRoute({
  method: 'get',
  path: '/docs',
  operationId: 'showReference',
  summary: 'This document as an interactive page',
  description: 'With an API key, requests can be tried out. It needs nothing from outside.',
  tags,
  security: [],
  responses: {
    200: { description: 'The page', content: { 'text/html': { schema: z.string() } } },
    ...refusesAnyone(),
  },
})

const asset = createRoute({
  method: 'get',
  path: '/docs/{asset}',
  operationId: 'readReferenceAsset',
  summary: 'What the page is made of',
  description: 'Styles, scripts and the icon.',
  tags,
  security: [],
  request: {
    params: z.object({
      asset: z.string().openapi({
        enum: ASSET_NAMES,
        description: 'Which of them',
        example: 'swagger-ui.css',
      }),
    }),
    query: z.object({
      v: z.string().optional().openapi({ description: 'Its version, with which it may be kept' }),
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
    ...refusesAnyone('not_found', 'invalid_request'),
  },
})

/**
 * The API's document and its reference for people; no key is needed.
 * @param app all of whose declarations are in the document, also those of routers that are mounted later
 */
export function docsRoutes(app: OpenAPIHono<AppEnv>) {
  let text: string | undefined
  return createRouter()
    .openapi(document, (c) => {
      text ??= writeDocument(app)
      return c.body(text, 200, {
        'content-type': 'application/json',
        'cache-control': 'no-cache',
      })
    })
    .openapi(page, (c) =>
      c.html(writePage(LIBRARY_VERSION), 200, {
        'content-security-policy': PAGE_POLICY,
        'cache-control': 'no-cache',
      }),
    )
    .openapi(asset, async (c) => {
      const name = c.req.valid('param').asset
      const found = await readAsset(name)
      if (!found) throw new DomainError('not_found', `Nothing is served at ${c.req.path}`)
      const kept = c.req.valid('query').v === LIBRARY_VERSION
      return c.body(found.body, 200, {
        'content-type': found.type,
        'cache-control': kept ? 'public, max-age=31536000, immutable' : 'no-cache',
      })
    })
}
