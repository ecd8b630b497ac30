import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Hono } from 'hono'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../../../src/app.ts'
import { REFUSALS } from '../../../../src/errors.ts'
import { useRig } from '../../../support/use-started.ts'

const Parameter = z.looseObject({
  name: z.string(),
  in: z.string(),
  description: z.string().default(''),
  example: z.unknown().optional(),
  schema: z.looseObject({ example: z.unknown().optional(), enum: z.unknown().optional() }),
})
const Operation = z.looseObject({
  description: z.string().default(''),
  parameters: z.array(Parameter).default([]),
  responses: z.record(z.string(), z.unknown()),
  security: z.array(z.record(z.string(), z.array(z.string()))).default([]),
})
const Receiving = z.looseObject({
  parameters: z.array(z.looseObject({ name: z.string(), required: z.boolean() })),
  requestBody: z.unknown(),
  responses: z.record(z.string(), z.unknown()),
})
const Document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
})

const rig = useRig({ settings: { ROLE: 'web' } })
let text: string
let document: z.infer<typeof Document>
beforeAll(async () => {
  const response = await fetch(`${rig.service.url}/openapi.json`)
  expect(response.headers.get('content-type')).toBe('application/json')
  text = await response.text()
  document = Document.parse(JSON.parse(text))
})

const listOperations = () =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      ...operation,
    })),
  )

describe('the document', () => {
  it('passes a linter with its strict rules and some more', async () => {
    const config = await createConfig({
      extends: ['recommended-strict'],
      rules: {
        'array-parameter-serialization': 'error',
        'component-name-unique': 'error',
        'no-http-verbs-in-paths': 'error',
        'no-mixed-number-range-constraints': 'error',
        'operation-description': 'error',
        'operation-singular-tag': 'error',
        'operation-tag-defined': 'error',
        'parameter-description': 'error',
        'path-params-defined': 'error',
      },
    })
    const source = JSON.stringify(document, undefined, 1)
    const found = await lintFromString({ source, absoluteRef: 'openapi.json', config })
    const problems = found.map(
      ({ ruleId, message, location: [at] }) => `${ruleId}: ${message} (${at?.pointer})`,
    )
    expect(problems).toEqual([])
  })

  it('is valid by the schema of OpenAPI 3.1', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(JSON.parse(text))
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined })
    expect(validator.version).toBe('3.1')
  })

  it('has every route that is served but pages, and no other', () => {
    const served = createApp(rig.service.ctx)
      .routes.filter(
        ({ path, method }) =>
          method !== 'ALL' && !path.includes('*') && !/^\/(console\b|docs\b|$)/.test(path),
      )
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`)
      // Served before the application; other methods are refused, in the gateway's own format.
      .concat(['GET /ipn', 'POST /ipn'])
    expect(served.length).toBeGreaterThan(15)
    expect(
      listOperations()
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual([...new Set(served)].toSorted())
  })

  it('names the codes of every refusal at the operations that may be answered with it', () => {
    const Refused = z.object({
      content: z.object({
        'application/problem+json': z.object({
          schema: z.object({
            properties: z.object({ code: z.object({ enum: z.string().array() }) }),
          }),
        }),
      }),
    })
    const codes = listOperations()
      .flatMap(({ responses }) => Object.values(responses))
      .flatMap((response) => Refused.safeParse(response).data ?? [])
      .flatMap(({ content }) => content['application/problem+json'].schema.properties.code.enum)
    expect([...new Set(codes), 'method_not_allowed'].toSorted()).toEqual(
      Object.keys(REFUSALS).toSorted(),
    )
  })

  it('names the scope of every merchant route, and requires no key for the others', () => {
    const operations = listOperations().map(({ name, security, description }) => {
      const scope = security.flatMap(({ ApiKey = [] }) => ApiKey).join()
      return {
        merchants: / \/v\d/.test(name),
        scope,
        isDescribed: description.includes(scope),
        name,
      }
    })
    expect(operations.filter(({ merchants, scope }) => merchants !== (scope !== ''))).toEqual([])
    expect(operations.filter(({ isDescribed }) => !isDescribed)).toEqual([])
  })

  it('gives every parameter a sentence of its own', () => {
    const names = new Map<string, Set<string>>()
    for (const { parameters } of listOperations()) {
      for (const { name, description } of parameters) {
        names.set(description, (names.get(description) ?? new Set()).add(name))
      }
    }
    const shared = [...names].filter(([, all]) => all.size > 1)
    expect(shared).toEqual([])
    expect([...names.keys()].filter((text) => !/\w+ \w+/.test(text))).toEqual([])
  })

  it('fills in the ids in paths, and no filter', () => {
    const given = listOperations().flatMap(({ parameters }) => parameters)
    const isFilledIn = ({ example, schema }: (typeof given)[number]) =>
      example !== undefined || schema.example !== undefined
    const inPaths = given.filter((one) => one.in === 'path')
    expect(inPaths.filter((one) => !isFilledIn(one) && !one.schema.enum)).toEqual([])
    const filters = given.filter((one) => one.in === 'query' && isFilledIn(one))
    expect(new Set(filters.map(({ name }) => name))).toEqual(
      new Set(['limit', 'amount', 'q', 'verbose']),
    )
  })

  it("fills in other ids once they are known, as those of the demo's payment", async () => {
    const { referenceExamples } = rig.service.ctx
    referenceExamples.set('paymentId', '354564703001').set('setHold.id', '354564703001')
    referenceExamples.set('orderId', 'a filter')
    const read = async () =>
      Document.parse(await (await fetch(`${rig.service.url}/openapi.json`)).json())
    const { paths } = await read()
    const example = (path: string, method: string, name: string) =>
      paths[path]?.[method]?.parameters.find((one) => one.name === name)?.example
    const filledIn = [
      example('/v1/payments/{paymentId}', 'get', 'paymentId'),
      example('/v1/holds/{target}/{id}', 'put', 'id'),
      example('/v1/holds/{target}/{id}', 'delete', 'id'),
      example('/v1/transactions', 'get', 'orderId'),
    ]
    referenceExamples.clear()
    expect(filledIn).toEqual(['354564703001', '354564703001', '1439211', undefined])
    expect(await read()).toEqual(document)
  })

  it('says of a refund by QR that it needs a receiver', () => {
    const { description } =
      listOperations().find(
        (one) => one.name.endsWith('/refunds') && one.name.startsWith('POST'),
      ) ?? expect.fail('no such operation')
    expect(description).toContain('QR needs a `receiver`')
  })

  it('describes the requests to webhook endpoints, and what their responses mean', () => {
    const { webhooks } = z
      .object({ webhooks: z.record(z.string(), z.object({ post: Receiving })) })
      .parse(JSON.parse(text))
    expect(Object.keys(webhooks)).toEqual(['event', 'endpoint.test'])
    const answers = Object.keys(webhooks.event?.post.responses ?? {})
    expect(answers.toSorted()).toEqual(['2XX', '410', 'default'])
    for (const [name, schema] of [
      ['event', 'Event'],
      ['endpoint.test', 'TestEvent'],
    ] as const) {
      const post = webhooks[name]?.post
      const names = post?.parameters.map(({ name, required }) => ({ name, required }))
      expect(names).toEqual(
        ['Webhook-Id', 'Webhook-Timestamp', 'Webhook-Signature'].map((name) => ({
          name,
          required: true,
        })),
      )
      expect(JSON.stringify(post?.requestBody)).toContain(`"#/components/schemas/${schema}"`)
    }
  })

  it('is served below any path, and the page with it', async () => {
    const direct = { incoming: { socket: {}, headers: {} } }
    const outer = new Hono().route('/pay', createApp(rig.service.ctx))
    const below = await outer.request('/pay/openapi.json', {}, direct)
    expect(await below.text()).toBe(text)
    expect((await outer.request('/pay/docs', {}, direct)).status).toBe(200)
  })
})

describe('the reference', () => {
  const readReferences = async () => {
    const page = await (await fetch(`${rig.service.url}/docs`)).text()
    return [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address = '']) => address)
  }

  it('has its own strict policy and no script or style in the page', async () => {
    const page = await fetch(`${rig.service.url}/docs`)
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'content-type': 'text/html; charset=UTF-8',
      'content-security-policy': expect.stringMatching(/^default-src 'none'; script-src 'self';/),
    })
    expect(page.headers.get('content-security-policy')).not.toMatch(/unsafe|https?:|\*/)
    expect(await page.text()).not.toMatch(/<style|style=|<script>| on\w+=/)
  })

  it('refers only to this service, which serves each file with its type', async () => {
    const references = await readReferences()
    expect(references.length).toBeGreaterThan(4)
    for (const reference of references) {
      expect(reference).toMatch(/^(docs\/|openapi\.json$)/)
      const response = await fetch(new URL(reference, `${rig.service.url}/docs`))
      expect([response.status, (await response.arrayBuffer()).byteLength > 100]).toEqual([
        200,
        true,
      ])
      const type = { css: 'text/css', js: 'text/javascript', png: 'image/png', json: 'application' }
      const [, ending = ''] = /\.(\w+)(\?|$)/.exec(reference) ?? []
      expect(response.headers.get('content-type')).toContain(
        Object.entries(type).find(([one]) => one === ending)?.[1],
      )
    }
  })

  it.each([
    'index.html',
    'package.json',
    '..%2fpackage.json',
    '%2e%2e%2f%2e%2e%2fpackage.json',
    'swagger-ui.css%00',
    'toString',
  ])('serves no file but its own: %s', async (name) => {
    const response = await fetch(`${rig.service.url}/docs/${name}`)
    expect(response.status).toBe(404)
  })
})
