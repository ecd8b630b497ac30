import { playRefundFormStories } from './refund-form/play-stories.ts'
import { playCallStories } from './story/play-stories.ts'
import { playTaskStories } from './tasks/play-stories.ts'

// Without scripts they are played at night (`test/nightly/stories.test.ts`): each form by itself is a test of its page.
playCallStories(true)
playRefundFormStories(true)
playTaskStories(true)
