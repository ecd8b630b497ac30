import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { TEXTS } from '../../../src/console/texts/catalogue.ts'

const ROOT = new URL('../../../src/console/', import.meta.url)
const SOURCES = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file) && !file.startsWith('texts/'))
  .map((file) => ({ file, text: readFileSync(new URL(file, ROOT), 'utf8') }))

/** What the code writes as a key, or as the beginning of keys: `*` stands for what it fills in. */
const WRITTEN = new Set(
  SOURCES.flatMap(({ text }) => [
    ...[...text.matchAll(/'([\w.]+)'/g)].map(([, key = '']) => key),
    ...[...text.matchAll(/`((?:[\w.]|\$\{[^`]*?\})+)`/g)].map(([, key = '']) =>
      key.replaceAll(/\$\{.*?\}(?=\.|$)/g, '*'),
    ),
  ]),
)

function isUsed(key: string): boolean {
  const parts = key.split('.')
  return [...WRITTEN].some((written) => {
    const named = written.split('.')
    const isWhole = named.length === parts.length
    const isGroup = named.length > 1 && named.length < parts.length && !written.includes('*')
    const isGroupOf = named.length > 1 && named.length === parts.length - 1
    return (
      (isWhole || isGroup || isGroupOf) &&
      named.every((one, at) => one === '*' || one === parts[at])
    )
  })
}

describe('the texts of the console', () => {
  it('are all used', () => {
    const keys = Object.keys(TEXTS)
    expect(keys.length).toBeGreaterThan(500)
    const unused = keys.filter((key) => {
      const notice = /^notice\.(\w+)$/.exec(key)?.[1]
      return notice === undefined ? !isUsed(key) : !WRITTEN.has(notice)
    })
    expect(unused).toEqual([])
  })

  it('stand in the catalogue, and nowhere else', () => {
    const sentence = /(?<![\w.])(['"`])[A-Z][a-z]+ [a-z][^'"`\n]*\1/
    const outside = SOURCES.flatMap(({ file, text }) =>
      text
        .split('\n')
        .filter((line) => sentence.test(line) && !/Error\(|throw |^\s*[/*]|\/\//.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    )
    expect(outside).toEqual([])
  })
})

describe('the Vietnamese texts', () => {
  it('take the same values as the English ones', () => {
    const values = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([name]) => name).sort()
    const different = Object.entries(TEXTS)
      .filter(([key]) => !key.endsWith('.one'))
      .filter(([, [en, vi]]) => String(values(en)) !== String(values(vi)))
    expect(different).toEqual([])
  })

  it('say whose account it is: a shop has one, and a bank', () => {
    const bare = Object.values(TEXTS).filter(([, vi]) =>
      /(?<!số )tài khoản(?! bán hàng| ngân hàng)/i.test(vi),
    )
    expect(bare).toEqual([])
  })

  it('leave nothing in English but names that stay', () => {
    const same = Object.values(TEXTS).filter(([en, vi]) => String(en) === vi)
    const named = same.filter(([text]) => /[a-z]{4,} [a-z]{2,}/.test(text))
    expect(named).toEqual([])
  })
})
