/** What the page adds to the style of Swagger UI. */
export const PAGE_STYLE = `.swagger-ui .response-col_links { display: none; }
.swagger-ui .refusal td { padding: 4px 0; }
.swagger-ui .refusal .response-col_description a { margin-right: 12px; font-family: monospace; }
.swagger-ui .highlight-code > .microlight { max-height: 280px; }
.swagger-ui .responses-inner .curl { max-height: 160px; }
#problems { box-sizing: border-box; max-width: 1460px; margin: 0 auto; padding: 20px; font-family: sans-serif; }
#problems table { border-collapse: collapse; font-size: 14px; }
#problems th, #problems td { padding: 4px 16px 4px 0; text-align: left; vertical-align: top; }
#problems tr:target { background: #fff3c4; }
`
