import type { Guard } from './guard.ts'

export const EXPORTS: readonly Guard[] = [
  {
    file: 'src/http/list.ts',
    text: '/^[=+\\-@\\t\\r]/',
    mutation: '/^[=+\\-@]/',
    test: 'test/unit/platform/http/csv.test.ts',
    claim: 'a cell "\\t=1" is written "\'\\t=1"',
    control: 'a cell "plain" is written "plain"',
  },
  {
    file: 'src/http/list.ts',
    text: '`"${text.replaceAll(\'"\', \'""\')}"`',
    mutation: '`"${text}"`',
    test: 'test/unit/platform/http/csv.test.ts',
    claim: 'a cell "with \\"quotes\\"" is written "\\"with \\"\\"quotes\\"\\"\\""',
    control: 'a cell "plain" is written "plain"',
  },
  {
    file: 'src/http/list.ts',
    text: 'const SEPARATOR = /[",\\r\\n]/',
    mutation: 'const SEPARATOR = /[",]/',
    test: 'test/unit/platform/http/csv.test.ts',
    claim: 'a cell "two\\nlines" is written "\\"two\\nlines\\""',
    control: 'a cell "plain" is written "plain"',
  },
]
