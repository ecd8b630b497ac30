/** The page's own rules: everything from here, nothing inline, nothing from outside. */
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

/** Starts the reference. The validator of the library's maker would be asked about the document: it is not. */
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
 * The page of the interactive reference. Its addresses are relative: it works below any path.
 * @param version of the library, in the addresses of what may be kept
 */
export function writePage(version: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>IPN processor: the API</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png?v=${version}">
<link rel="stylesheet" href="docs/swagger-ui.css?v=${version}">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. The document itself is at <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js?v=${version}"></script>
<script src="docs/start.js"></script>
</body>
</html>
`
}
