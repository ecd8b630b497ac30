import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Hono } from 'hono'
import { CONSOLE_STYLE } from './style.ts'

type Asset = { path: string; type: string; body: string }

/** Names a file by its content, so that browsers may keep it for ever. */
function nameAsset(name: string, extension: string, type: string, body: string): Asset {
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 16)
  return { path: `/console/assets/${name}.${hash}.${extension}`, type, body }
}

const style = nameAsset('console', 'css', 'text/css; charset=utf-8', CONSOLE_STYLE)
const script = nameAsset(
  'console',
  'js',
  'text/javascript; charset=utf-8',
  readFileSync(new URL('./assets/console.js', import.meta.url), 'utf8'),
)

/** The URLs of the console's own files. */
export const ASSETS = { style: style.path, script: script.path }

/** Serves the style sheet and the script, to anybody: they hold no data. */
export function assetRoutes(): Hono {
  const app = new Hono()
  for (const { path, type, body } of [style, script]) {
    app.get(path, (c) =>
      c.body(body, 200, {
        'content-type': type,
        'cache-control': 'public, max-age=31536000, immutable',
      }),
    )
  }
  return app
}
