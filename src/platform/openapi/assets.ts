import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { z } from '@hono/zod-openapi'
import { PAGE_STYLE } from './page-style.ts'
import { START_SCRIPT } from './start-script.ts'

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

export type Asset = { type: string; body: Uint8Array<ArrayBuffer> }

const cache = new Map<string, Asset>(
  Object.entries(OWN_FILES).map(([name, { type, text }]) => [
    name,
    { type, body: Uint8Array.from(Buffer.from(text)) },
  ]),
)

/** Returns an asset by its name, undefined when there is none. Each file is read from disk once. */
export async function readAsset(name: string): Promise<Asset | undefined> {
  const type = Object.entries(LIBRARY_FILES).find(([file]) => file === name)?.[1]
  const cached = cache.get(name)
  if (cached || type === undefined) return cached
  const asset = { type, body: Uint8Array.from(await readFile(join(dirname(manifest), name))) }
  cache.set(name, asset)
  return asset
}
