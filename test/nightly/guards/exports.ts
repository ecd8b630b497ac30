import { type Guard, guards } from './guard.ts'

export const EXPORTS: readonly Guard[] = [
  ...guards({ file: 'src/http/list.ts', test: 'test/unit/platform/http/csv.test.ts' }, [
    {
      text: '/^[=+\\-@\\t\\r]/',
      mutation: '/^[=+\\-@]/',
      claim: 'a cell "\\t=1" is written "\'\\t=1"',
      control: 'a cell "plain" is written "plain"',
    },
    {
      text: '`"${text.replaceAll(\'"\', \'""\')}"`',
      mutation: '`"${text}"`',
      claim: 'a cell "with \\"quotes\\"" is written "\\"with \\"\\"quotes\\"\\"\\""',
      control: 'a cell "plain" is written "plain"',
    },
    {
      text: 'const SEPARATOR = /[",\\r\\n]/',
      mutation: 'const SEPARATOR = /[",]/',
      claim: 'a cell "two\\nlines" is written "\\"two\\nlines\\""',
      control: 'a cell "plain" is written "plain"',
    },
  ]),
]
