import { REFUSALS } from '../../errors.ts'

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
