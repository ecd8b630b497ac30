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

/** Starts Swagger UI. Without `validatorUrl: null` it would send the document to its vendor's validator. */
export const START_SCRIPT = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
})
`

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
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. The document is at <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js?v=${version}"></script>
<script src="docs/start.js"></script>
</body>
</html>
`
}
