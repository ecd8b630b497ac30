import { raw } from 'hono/html'
import type { Child } from 'hono/jsx'

type DocumentOptions = {
  language: string
  title: string
  /** URLs of style sheets and of scripts, which are modules. */
  styles: readonly string[]
  scripts?: readonly string[]
  /** Reloads the page: after how many seconds, and from where (`5;url=/`). */
  refresh?: string | undefined
  children: Child
}

/** A whole HTML page. It contains nothing inline, so that its policy can forbid inline scripts and styles. */
export function Document(props: DocumentOptions) {
  const { language, title, styles, scripts = [], refresh, children } = props
  return (
    <>
      {raw('<!doctype html>')}
      <html lang={language}>
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          {refresh === undefined ? null : <meta http-equiv="refresh" content={refresh} />}
          <title>{title}</title>
          <link rel="icon" href="data:," />
          {styles.map((href) => (
            <link rel="stylesheet" href={href} />
          ))}
          {scripts.map((src) => (
            <script type="module" src={src} />
          ))}
        </head>
        <body>{children}</body>
      </html>
    </>
  )
}
