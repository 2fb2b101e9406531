import DefaultTheme from 'vitepress/theme';
import './tokens.css';

export default DefaultTheme;
