import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { START_SCRIPT } from '../../../src/http/reference-page.ts'

type Element = { type: unknown; props: Record<string, unknown>; children: unknown[] }

/** As much of an immutable map as the page uses of those that Swagger UI hands to its components. */
class ImmutableMap {
  readonly #entries: readonly (readonly [string, unknown])[]
  constructor(entries: readonly (readonly [string, unknown])[]) {
    this.#entries = entries
  }
  get size(): number {
    return this.#entries.length
  }
  keys(): IterableIterator<string> {
    return this.#entries.map(([name]) => name).values()
  }
  get(name: string): unknown {
    return this.#entries.find(([one]) => one === name)?.[1]
  }
  getIn(path: readonly string[]): unknown {
    const step = (at: unknown, name: string) =>
      at instanceof ImmutableMap ? at.get(name) : undefined
    return path.reduce<unknown>(step, this)
  }
  set(name: string, value: unknown): ImmutableMap {
    return new ImmutableMap(this.#entries.map(([one, old]) => [one, one === name ? value : old]))
  }
  delete(name: string): ImmutableMap {
    return this.filter((_, one) => one !== name)
  }
  filter(keep: (value: unknown, name: string) => boolean): ImmutableMap {
    return new ImmutableMap(this.#entries.filter(([name, value]) => keep(value, name)))
  }
  sortBy(rank: (value: unknown, name: string) => number): ImmutableMap {
    const sorted = this.#entries.toSorted(([a, one], [b, two]) => rank(one, a) - rank(two, b))
    return new ImmutableMap(sorted)
  }
}
const Kept = z.instanceof(ImmutableMap)

const Options = z.looseObject({
  url: z.string(),
  validatorUrl: z.null(),
  plugins: z.tuple([z.custom<() => unknown>((value) => typeof value === 'function')]),
})
type Wrap = (original: string, system: object) => (props: object) => Element
const Plugin = z.object({
  wrapComponents: z.record(
    z.string(),
    z.custom<Wrap>((value) => typeof value === 'function'),
  ),
})

const React = {
  createElement: (
    type: unknown,
    props: Record<string, unknown>,
    ...children: unknown[]
  ): Element => ({
    type,
    props,
    children,
  }),
}

function readPlugin() {
  let options: unknown
  runInNewContext(START_SCRIPT, {
    SwaggerUIBundle: (given: unknown) => {
      options = given
    },
  })
  const { plugins } = Options.parse(options)
  return Plugin.parse(plugins[0]()).wrapComponents
}

const render = (name: 'response' | 'responses', props: object): Element =>
  readPlugin()[name]?.('Original', { React })(props) ?? expect.fail(`${name} is not wrapped`)

describe('an operation of the reference', () => {
  it('has the answer to an ordinary request first, then other successes, then refusals', () => {
    const codes = ['200', '202', '400', '404', '503']
    const responses = new ImmutableMap(codes.map((code) => [code, {}]))
    const { type, props } = render('responses', { responses, path: '/' })
    expect(type).toBe('Original')
    expect(props.path).toBe('/')
    expect([...Kept.parse(props.responses).keys()]).toEqual(['202', '200', '400', '404', '503'])
  })

  it('has a line for each status of its problems, which lead to the table', () => {
    const examples = new ImmutableMap([
      ['held', {}],
      ['exceeds_refundable', {}],
    ])
    const response = new ImmutableMap([
      ['description', 'long'],
      ['headers', {}],
      [
        'content',
        new ImmutableMap([
          ['application/problem+json', new ImmutableMap([['examples', examples]])],
        ]),
      ],
    ])
    const { type, children } = render('response', { code: '409', response })
    expect(type).toBe('tr')
    expect(JSON.stringify(children)).not.toContain('long')
    expect(children).toMatchObject([
      { type: 'td', children: ['409'] },
      {
        type: 'td',
        children: [
          [
            { type: 'a', props: { href: '#problem-held' }, children: ['held'] },
            { type: 'a', props: { href: '#problem-exceeds_refundable' } },
          ],
        ],
      },
    ])
  })

  it('shows of a success only the headers that are its own', () => {
    const headers = new ImmutableMap([
      ['X-Request-Id', {}],
      ['RateLimit', {}],
      ['ETag', {}],
    ])
    const show = (response: ImmutableMap) => {
      const { type, props } = render('response', { code: '200', response, path: '/' })
      expect([type, props.path]).toEqual(['Original', '/'])
      return Kept.parse(props.response)
    }
    const shown = show(new ImmutableMap([['headers', headers]]))
    expect([...Kept.parse(shown.get('headers')).keys()]).toEqual(['ETag'])
    const none = new ImmutableMap([['headers', headers.delete('ETag')]])
    expect([...show(none).keys()]).toEqual([])
    expect([...show(new ImmutableMap([['description', 'A page']])).keys()]).toEqual(['description'])
  })

  it("shows the description of a refusal that is no problem, as of the gateway's side", () => {
    const response = new ImmutableMap([['description', 'The signature is wrong']])
    const { children } = render('response', { code: '401', response })
    expect(children[1]).toMatchObject({ children: ['The signature is wrong'] })
  })
})
