import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { z } from '@hono/zod-openapi'
import { START_SCRIPT } from './page.ts'

const require = createRequire(import.meta.url)
const manifest = require.resolve('swagger-ui-dist/package.json')

/** Of the pages' library: its assets may be kept for as long as it does not change. */
export const { version: LIBRARY_VERSION } = z
  .object({ version: z.string() })
  .parse(require(manifest))

/** What the page is made of, and nothing else of the library's folder. */
const LIBRARY = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
} as const

const START = 'start.js'

export const ASSET_NAMES = [...Object.keys(LIBRARY), START]

export type Asset = { type: string; body: Uint8Array<ArrayBuffer> }

const known = new Map<string, Asset>([
  [
    START,
    { type: 'text/javascript; charset=utf-8', body: Uint8Array.from(Buffer.from(START_SCRIPT)) },
  ],
])

/** An asset by its name; read once. */
export async function readAsset(name: string): Promise<Asset | undefined> {
  const type = Object.entries(LIBRARY).find(([one]) => one === name)?.[1]
  const kept = known.get(name)
  if (kept || type === undefined) return kept
  const asset = { type, body: Uint8Array.from(await readFile(join(dirname(manifest), name))) }
  known.set(name, asset)
  return asset
}
