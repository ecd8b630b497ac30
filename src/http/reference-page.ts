import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { z } from '@hono/zod-openapi'
import { REFUSALS } from '../errors.ts'

/** The page's Content-Security-Policy: only this origin's files, nothing inline. */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * Renders the page of the interactive reference. Its URLs are relative, so it works below any path.
 * @param version of Swagger UI, added to the URLs of files that may be cached
 */
export function renderPage(version: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>IPN processor API</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png?v=${version}">
<link rel="stylesheet" href="docs/swagger-ui.css?v=${version}">
<link rel="stylesheet" href="docs/page.css">
</head>
<body>
<div id="reference"></div>
<section id="problems">
<h2>Problems</h2>
<p>Every refusal is a problem (RFC 9457). Its <code>code</code> is stable, its <code>detail</code> is for people, and
<code>errors</code> names invalid fields.</p>
<table>
<thead><tr><th>code</th><th>status</th><th>meaning</th></tr></thead>
<tbody>
${renderProblems()}
</tbody>
</table>
</section>
<noscript>This page needs JavaScript. The document is at <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js?v=${version}"></script>
<script src="docs/start.js"></script>
</body>
</html>
`
}

function renderProblems(): string {
  return Object.entries(REFUSALS)
    .map(
      ([code, { status, title }]) =>
        `<tr id="problem-${code}"><td><code>${code}</code></td><td>${status}</td><td>${escapeText(title)}</td></tr>`,
    )
    .join('\n')
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

/** What the page adds to the style of Swagger UI. */
const PAGE_STYLE = `.swagger-ui .response-col_links { display: none; }
.swagger-ui .refusal td { padding: 4px 0; }
.swagger-ui .refusal .response-col_description a { margin-right: 12px; font-family: monospace; }
.swagger-ui .highlight-code > .microlight { max-height: 280px; }
.swagger-ui .responses-inner .curl { max-height: 160px; }
#problems { box-sizing: border-box; max-width: 1460px; margin: 0 auto; padding: 20px; font-family: sans-serif; }
#problems table { border-collapse: collapse; font-size: 14px; }
#problems th, #problems td { padding: 4px 16px 4px 0; text-align: left; vertical-align: top; }
#problems tr:target { background: #fff3c4; }
`

/**
 * Starts Swagger UI. Without `validatorUrl: null` it would send the document to its vendor's validator.
 *
 * A plugin keeps an opened operation short: the answer to an ordinary request comes first, a problem takes a line that
 * leads to its row of the table below, and headers that every response has are left to the introduction.
 */
export const START_SCRIPT = `const EVERYWHERE = ['X-Request-Id', 'RateLimit-Policy', 'RateLimit']
const PROBLEM = ['content', 'application/problem+json', 'examples']

function rank(code) {
  if (code === '202') return 0
  return code.startsWith('2') ? 1 : 2
}

const compact = () => ({
  wrapComponents: {
    responses: (Responses, { React }) => (props) =>
      React.createElement(Responses, {
        ...props,
        responses: props.responses.sortBy((_, code) => rank(code)),
      }),
    response: (Response, { React: { createElement } }) => (props) => {
      const { code, response } = props
      if (!/^[45]/.test(code)) {
        const headers = response.get('headers')?.filter((_, name) => !EVERYWHERE.includes(name))
        return createElement(Response, {
          ...props,
          response: headers?.size ? response.set('headers', headers) : response.delete('headers'),
        })
      }
      const names = [...(response.getIn(PROBLEM)?.keys() ?? [])]
      const links = names.map((name) =>
        createElement('a', { key: name, href: '#problem-' + name }, name),
      )
      const details = links.length > 0 ? links : response.get('description')
      return createElement(
        'tr',
        { className: 'response refusal', 'data-code': code },
        createElement('td', { className: 'response-col_status' }, code),
        createElement('td', { className: 'response-col_description' }, details),
      )
    },
  },
})

SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
  plugins: [compact],
})
`

const require = createRequire(import.meta.url)
const manifest = require.resolve('swagger-ui-dist/package.json')

/** The version of Swagger UI: its assets may be cached until it changes. */
export const { version: LIBRARY_VERSION } = z
  .object({ version: z.string() })
  .parse(require(manifest))

/** The files of Swagger UI that the page uses; no other file of its folder is served. */
const LIBRARY_FILES = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
} as const

/** The page's own files. */
const OWN_FILES = {
  'start.js': { type: 'text/javascript; charset=utf-8', text: START_SCRIPT },
  'page.css': { type: 'text/css; charset=utf-8', text: PAGE_STYLE },
} as const

export const ASSET_NAMES = [...Object.keys(LIBRARY_FILES), ...Object.keys(OWN_FILES)]

/** A file whose bytes and tag are made once, however often it is asked for. */
export type TaggedFile = { type: string; body: Uint8Array<ArrayBuffer>; etag: string }

export function tagFile(type: string, content: string | Uint8Array): TaggedFile {
  const body = Uint8Array.from(Buffer.from(content))
  return { type, body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` }
}

const cache = new Map<string, TaggedFile>(
  Object.entries(OWN_FILES).map(([name, { type, text }]) => [name, tagFile(type, text)]),
)

/** Returns an asset by its name, undefined when there is none. Each file is read from disk once. */
export async function readAsset(name: string): Promise<TaggedFile | undefined> {
  const type = Object.entries(LIBRARY_FILES).find(([file]) => file === name)?.[1]
  const cached = cache.get(name)
  if (cached || type === undefined) return cached
  const asset = tagFile(type, await readFile(join(dirname(manifest), name)))
  cache.set(name, asset)
  return asset
}
